/* SPDX-License-Identifier: MIT */
/* Plots of the resources of the process over time: memory, CPUs, bytes read and written. */
#ifndef REPORT_CURVES_H
#define REPORT_CURVES_H

#include <stdio.h>
#include "report/report.h"

/* Writes nothing if there are fewer than two points. */
void report_curves(const struct report *report, const struct clocks *clocks, FILE *to);

#endif
