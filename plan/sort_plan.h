/* SPDX-License-Identifier: MIT */
/* --plan: tells what a sort, a merge, a markdup or a sormadup would take, and makes nothing. */
#ifndef SORT_PLAN_H
#define SORT_PLAN_H

#include "plan/forecast.h"

/* Prints the forecast to standard output, as text or JSON, or its error to stderr. Returns the exit status. */
int sort_plan(const struct engine_opts *opts, struct forecast forecast);

#endif
