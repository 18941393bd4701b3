/* SPDX-License-Identifier: MIT */
/* The command `markdup`, from start to finish. */
#ifndef BAM_MARKDUP_H
#define BAM_MARKDUP_H

struct markdup_opts;

/* Marks the duplicates of a sorted file. Prints errors. Returns the exit status. */
int bam_markdup(const struct markdup_opts *opts);

#endif
