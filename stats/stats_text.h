/* SPDX-License-Identifier: MIT */
/* The text of `samtools stats`: its sections in their order, letter for letter. Its literal lines are part of the
 * format, which plot-bamstats and MultiQC read. */
#ifndef STATS_TEXT_H
#define STATS_TEXT_H

#include <stdio.h>

struct counter_numbers;
struct latch;
struct stats_part;
struct stats_sums;

/* Prints all sections, and closes the part and the sums. value: the value of the tag of -S that all these records have;
 * NULL: the sections are about all records. Returns -1 if out of memory, or if the records are not in order as -t needs
 * them; the error is recorded in the latch. */
int stats_text_print(struct stats_part *part, struct stats_sums *sums, const char *value, FILE *out,
                     struct latch *latch);

/* Gets the main numbers of the printed text. */
void stats_text_numbers(const struct stats_sums *sums, struct counter_numbers *numbers);

#endif
