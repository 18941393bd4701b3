/* SPDX-License-Identifier: MIT */
#ifndef BAM_SORT_H
#define BAM_SORT_H

struct sort_opts;

/* Sorts opts->in into opts->out. Returns the exit status; the one message of a
 * failure is on stderr. Does not return if a signal ended the work. */
int bam_sort(const struct sort_opts *opts);

#endif
