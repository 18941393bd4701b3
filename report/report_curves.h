/* SPDX-License-Identifier: MIT */
/* Plots of what the process used over time: memory, CPUs, bytes read and written. */
#ifndef REPORT_CURVES_H
#define REPORT_CURVES_H

#include <stdio.h>
#include "report/report.h"

/* Where there are less than two points it writes nothing. */
void report_curves(const struct report *report, const struct clocks *clocks, FILE *to);

#endif
