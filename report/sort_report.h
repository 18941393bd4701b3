/* SPDX-License-Identifier: MIT */
/* --report and --trace: their files, opened before anything is read, and what is
 * written there when the sort is done. */
#ifndef SORT_REPORT_H
#define SORT_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include "write/out_file.h"
#include "base/stats.h"

struct latch;
struct sort_opts;

struct sort_report {
    const struct sort_opts *opts;
    struct out_file report, trace;
};

/* What is to be counted for what the options ask for. */
enum stats_detail sort_report_detail(const struct sort_opts *opts);

/* Opens the files. -1: told to the latch. */
int sort_report_open(struct sort_report *report, const struct sort_opts *opts, struct latch *latch);

/* After the output is complete, with the memory still there: what there is to tell. stats
 * are stopped. -1: told to the latch. */
int sort_report_write(struct sort_report *report, const struct stats *stats, uint64_t records, struct latch *latch);

/* Whatever was not written is gone. */
void sort_report_close(struct sort_report *report);

#endif
