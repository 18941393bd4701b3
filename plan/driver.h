/* SPDX-License-Identifier: MIT */
/* What the drivers of sort and merge share: the second half, the reports, the team, and how it all ends. */
#ifndef DRIVER_H
#define DRIVER_H

#include "report/sort_report.h"
#include "write/written.h"

struct progress;
struct sort_inputs;
struct sort_opts;

struct driver {
    struct latch *latch;         /* of the first half, as the next one */
    struct progress *progress;
    struct written out;
    struct sort_report report;
    void (*work)(void *arg);     /* see driver_run() */
    void *arg;
    char why_sorted[1024];       /* why bam_merge_sorted() did not do it */
};

/* Runs work(arg) on the main thread of a team. A signal ends the process here. Returns how many threads there were. */
int driver_run(struct driver *driver, const struct sort_opts *opts, const struct sort_inputs *inputs,
               void (*work)(void *arg), void *arg);

/* Writes the reports, if all went well. Call it when both halves are finished. Prints what went wrong. Frees the stats,
 * which may be NULL. The result is the exit status. Does not return if a signal ended the work. */
int driver_end(struct driver *driver, struct stats *stats, uint64_t records);

#endif
