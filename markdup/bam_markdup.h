/* SPDX-License-Identifier: MIT */
/* The command `markdup`, from beginning to end. */
#ifndef BAM_MARKDUP_H
#define BAM_MARKDUP_H

struct markdup_opts;

/* Marks the duplicates of a sorted file. Prints what went wrong. The result is the exit status. */
int bam_markdup(const struct markdup_opts *opts);

#endif
