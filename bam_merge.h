/* SPDX-License-Identifier: MIT */
/* The command `merge`, from beginning to end. */
#ifndef BAM_MERGE_H
#define BAM_MERGE_H

struct merge_opts;

/* Merges sorted files into one. Prints what went wrong. The result is the exit status. */
int bam_merge(const struct merge_opts *opts);

#endif
