/* SPDX-License-Identifier: MIT */
/* What `samtools stats` prints: the sections in their order, to the letter. Its literal lines are part of the
 * format, which plot-bamstats and MultiQC read. */
#ifndef STATS_TEXT_H
#define STATS_TEXT_H

#include <stdio.h>

struct stats_barcode_order;
struct stats_settings;
struct stats_sums;
struct stats_whole;

/* Prints all. The sums and `whole` are closed on the way. -1: no memory. */
int stats_text_print(const struct stats_settings *settings, struct stats_sums *sums, struct stats_whole *whole,
                     const struct stats_barcode_order *barcodes, FILE *out);

#endif
