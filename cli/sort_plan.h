/* SPDX-License-Identifier: MIT */
/* `samtools sort --plan`: tells what the sort would take, and does not sort. */
#ifndef SORT_PLAN_H
#define SORT_PLAN_H

struct sort_opts;

/* Prints the forecast to standard output, as text or JSON. Returns the exit status; the one message of a failure is on
 * stderr. */
int sort_plan(const struct sort_opts *opts);

#endif
