/* SPDX-License-Identifier: MIT */
#ifndef BAM_STATS_H
#define BAM_STATS_H

struct stats_opts;

/* Counts the records of the input and prints the text of the counter. It also prints error messages. Returns the exit
 * status. */
int bam_stats(const struct stats_opts *opts);

#endif
