/* SPDX-License-Identifier: MIT */
/* The parts that the drivers of all commands share: the clocks, the line of progress, the output, the reports, the
 * team, and the end of a command. */
#ifndef DRIVER_H
#define DRIVER_H

#include "base/engine.h"
#include "base/latch.h"
#include "base/progress.h"
#include "report/command_report.h"
#include "write/written.h"

struct inputs;
struct engine_opts;

struct driver {
    struct engine engine;        /* producers and the output use this field and the next two. The command sets the
                                  * latch, and driver_begin() the rest of this field */
    struct progress progress;
    struct written out;
    struct command_report report;
    void (*work)(void *arg);     /* see driver_run() */
    void *arg;
};

/* Opens the reports, and starts the clocks and the line of progress. -1: the error is recorded in the latch; call
 * driver_finish() and driver_end() anyway. */
int driver_begin(struct driver *driver, const struct engine_opts *opts);

/* Starts them again after a failed attempt, whose producers and output are finished. The reports stay open. -1: as
 * above. */
int driver_begin_again(struct driver *driver, const struct engine_opts *opts);

/* Opens the output. It makes the checks that do not need input, so that a mistake is reported before the program waits
 * for a pipe. `stats` and `sort --check` write no records, do not call it, and open the files of their texts
 * themselves. -1: as above. */
int driver_open(struct driver *driver, const struct engine_opts *opts, const struct memory_rings *rings);

/* Runs work(arg) on the main thread of a new team. Before the work it sets the sizes that progress is measured by,
 * and after the work it measures the memory for the report. If a signal was caught, removes the unfinished output and
 * ends the process without returning. Returns the number of threads in the team. */
int driver_run(struct driver *driver, const struct engine_opts *opts, const struct inputs *inputs,
               void (*work)(void *arg), void *arg);

/* Gives the outputs their names, unless the latch holds an error. A failure here is recorded in the latch. Closes
 * the output. Call it after the parallel region of the work. The output is then in place, and later errors (of reports,
 * or of statistics) only change the exit status. */
void driver_finish(struct driver *driver);

/* Stops the clocks and ends the line of progress. Writes the reports, if there was no error; otherwise prints the
 * error. Frees the clocks, which may be NULL. Call it when producers and output are finished. Returns the exit status.
 * Does not return if a signal ended the work. */
int driver_end(struct driver *driver, uint64_t records);

#endif
