/* SPDX-License-Identifier: MIT */
/* --check: is a file in the given order? Writes nothing. */
#ifndef SORT_CHECK_H
#define SORT_CHECK_H

struct engine_opts;

/* Reads opts->in once, holding two records and some blocks. Returns the exit status: 0 if no record comes before the
 * one that precedes it; else 1, the first offence or the error is on stderr. */
int sort_check(const struct engine_opts *opts);

#endif
