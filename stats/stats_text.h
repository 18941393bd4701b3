/* SPDX-License-Identifier: MIT */
/* The text of `samtools stats`: the sections in their order, to the letter. Its literal lines are part of the format,
 * which plot-bamstats and MultiQC read. */
#ifndef STATS_TEXT_H
#define STATS_TEXT_H

#include <stdio.h>

struct counter_numbers;
struct latch;
struct stats_part;
struct stats_sums;

/* Prints all. Both are closed on the way. value: of the tag of -S that all records have; NULL: they are all records.
 * -1: out of memory, or the records are not in order as -t needs them; the error is recorded in the latch. */
int stats_text_print(struct stats_part *part, struct stats_sums *sums, const char *value, FILE *out,
                     struct latch *latch);

/* The main numbers of what was printed. */
void stats_text_numbers(const struct stats_sums *sums, struct counter_numbers *numbers);

#endif
