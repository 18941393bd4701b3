/* SPDX-License-Identifier: MIT */
/* The picture of a page: threads over time by stage, the same for each thread, and its legend. */
#ifndef REPORT_CHART_H
#define REPORT_CHART_H

#include <stdio.h>
#include "report/report.h"

/* clocks must have spans, and be stopped. */
void report_chart(const struct report *report, const struct clocks *clocks, FILE *to);

/* The colour of a stage, in CSS. */
const char *report_chart_colour(enum stage stage);

#endif
