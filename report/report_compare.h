/* SPDX-License-Identifier: MIT */
/* Two reports (JSON) side by side, as a table of text and as a page. */
#ifndef REPORT_COMPARE_H
#define REPORT_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include "base/clocks.h"

enum { REPORT_COMPARE_NUMBERS = 18, REPORT_COMPARE_TEXTS = 6, REPORT_COMPARE_SIZE = 256 };

/* The values of one report that are compared. A number that is missing in the report is NAN. */
struct report_compare_side {
    const char *name;            /* name of its file */
    char texts[REPORT_COMPARE_TEXTS][REPORT_COMPARE_SIZE];   /* report_compare.c names them, and the numbers */
    double numbers[REPORT_COMPARE_NUMBERS];
    double stages[N_STAGES];     /* seconds of all threads */
};

/* Reads a report. name must stay valid. -1: the bytes are not one of our reports. */
int report_compare_read(struct report_compare_side *side, const char *name, const char *json, size_t size);

/* Write the comparison of two reports that were read as text, or as a page. */
void report_compare_text(const struct report_compare_side sides[2], FILE *to);
void report_compare_html(const struct report_compare_side sides[2], FILE *to);

#endif
