/* SPDX-License-Identifier: MIT */
/* --plan: tells what a sort, a merge, a markdup or a sormadup would take, and makes nothing. */
#ifndef SORT_PLAN_H
#define SORT_PLAN_H

struct markdup_opts;
struct merge_opts;
struct sormadup_opts;
struct sort_opts;

/* Prints the forecast to standard output, as text or JSON. Returns the exit status; the one message of a failure is on
 * stderr. */
int sort_plan(const struct sort_opts *opts);
int sort_plan_merge(const struct merge_opts *opts);
int sort_plan_markdup(const struct markdup_opts *opts);
int sort_plan_sormadup(const struct sormadup_opts *opts);

#endif
