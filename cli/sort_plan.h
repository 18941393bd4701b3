/* SPDX-License-Identifier: MIT */
/* --plan: prints the resources that a sort, a merge, a markdup or a sormadup would use, and makes no file. */
#ifndef SORT_PLAN_H
#define SORT_PLAN_H

#include "cli/forecast.h"

/* Prints the forecast to standard output, as text or JSON, or its error to stderr. Returns the exit status. */
int sort_plan(const struct engine_opts *opts, struct forecast forecast);

#endif
