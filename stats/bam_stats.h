/* SPDX-License-Identifier: MIT */
#ifndef BAM_STATS_H
#define BAM_STATS_H

struct stats_opts;

/* Counts the records of the input and prints what the counter says of them. Prints what went wrong. The result is the
 * exit status. */
int bam_stats(const struct stats_opts *opts);

#endif
