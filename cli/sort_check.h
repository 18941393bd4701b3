/* SPDX-License-Identifier: MIT */
/* --check: checks whether a file is in the given order. Writes nothing. */
#ifndef SORT_CHECK_H
#define SORT_CHECK_H

struct engine_opts;

/* Reads opts->in once. Memory: chunks as in a merge, and a slice for each thread and two more. Returns the exit
 * status. 0: no record belongs before its predecessor. 1: stderr has the first record out of order, or the error. */
int sort_check(const struct engine_opts *opts);

#endif
