/* SPDX-License-Identifier: MIT */
/* --report and --trace. Their files are opened before anything is read, and written when the command has succeeded. */
#ifndef COMMAND_REPORT_H
#define COMMAND_REPORT_H

#include <stdint.h>
#include "base/out_file.h"
#include "base/clocks.h"
#include "report/report_input.h"
#include "report/report_place.h"
#include "stats/counter.h"

struct latch;
struct report_request;

struct command_report {
    const struct report_request *request;
    struct out_file report, trace;
    struct report_place in;      /* as it was before the run, which may replace it */
    uint64_t out_before;         /* if standard output is a file: its size before */
    uint64_t huge_pages;         /* bytes */
    struct report_inputs merged;     /* the driver of a merge sets this and the next before the report is written */
    struct report_copied copied;
    struct counter_numbers counted;
};

/* The detail of counting that these reports need. */
enum clocks_detail command_report_detail(const struct report_request *request);

/* Opens the files of a struct that is zero. -1: failed, and the error is recorded in the latch. */
int command_report_open(struct command_report *report, const struct report_request *request, struct latch *latch);

/* Measures how much memory is in huge pages. Call it before the arenas are freed. */
void command_report_measure_memory(struct command_report *report);

/* Writes report and trace. Call it when the output is complete and the clocks are stopped. -1: failed, and the error
 * is recorded in the latch. */
int command_report_write(struct command_report *report, const struct clocks *clocks, uint64_t records,
                         struct latch *latch);

/* Closes the files; a file that was not written is removed. */
void command_report_close(struct command_report *report);

#endif
