/* SPDX-License-Identifier: MIT */
/* The frame of a plot over time: its size, lines and names. A plot has a fixed number of units in width and is
 * stretched to the width of the page; a unit of its height is a pixel. */
#ifndef REPORT_PLOT_H
#define REPORT_PLOT_H

#include <stdio.h>
#include "report/report.h"

enum { REPORT_PLOT_WIDTH = 1000 };

/* Begins a plot, up to the content of <svg>. The caller ends it. */
void report_plot_begin(FILE *to, const char *kind, double height, const char *about);

/* Draws lines at times of the axis, and at the start of phases. */
void report_plot_lines(const struct report *report, const struct clocks *clocks, double height, FILE *to);

/* Writes the names of phases above a plot, after </svg>. */
void report_plot_phases(const struct clocks *clocks, FILE *to);

/* Writes the times, below all plots. */
void report_plot_axis(const struct report *report, FILE *to);

/* The step of an axis: 1, 2 or 5 times a power of ten, so that there are at most 10 steps. */
double report_plot_step(double range);

#endif
