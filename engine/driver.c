/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "base/engine.h"
#include "base/machine.h"
#include "base/message.h"
#include "base/clocks.h"
#include "base/task_ring.h"
#include "engine/driver.h"
#include "engine/limits.h"
#include "engine/engine_opts.h"
#include "read/input.h"
#include "write/record_sink.h"

/* Runs the work. If a signal ended it, ends the process here. At the end of the parallel region the process would have
 * to wait for all threads, and a thread may be stuck in a write to a pipe that is not read. */
static void in_team(void *driver)
{
    struct driver *d = driver;
    latch_hide_signals(false);
    d->work(d->arg);
    if (!latch_signalled())
        return;
    progress_end(&d->progress, false, 0);
    written_abandon(&d->out);
    command_report_close(&d->report);
    latch_reraise();
}

/* Begins the clocks and the line of progress. */
static int start(struct driver *d, const struct engine_opts *opts)
{
    d->engine.n_threads = opts->n_threads;
    d->engine.clocks = clocks_new(opts->n_threads, command_report_detail(&opts->report));
    clocks_phase(d->engine.clocks, PHASE_OPEN);
    if (!d->engine.clocks)
        return latch_fail(d->engine.latch, "out of memory");
    progress_start(&d->progress, opts->progress, d->engine.clocks);
    return 0;
}

int driver_begin(struct driver *d, const struct engine_opts *opts)
{
    machine_share_heaps();
    written_begin(&d->out, &opts->out, &d->engine);      /* first, since each error ends the output */
    return command_report_open(&d->report, &opts->report, d->engine.latch) < 0 ? -1 : start(d, opts);
}

int driver_begin_again(struct driver *d, const struct engine_opts *opts)
{
    progress_end(&d->progress, false, 0);
    clocks_free(d->engine.clocks);
    *d->engine.latch = (struct latch){0};
    written_begin(&d->out, &opts->out, &d->engine);
    return start(d, opts);
}

int driver_open(struct driver *d, const struct engine_opts *opts, const struct memory_rings *rings)
{
    if (written_open(&d->out, rings, engine_opts_input(opts)) < 0)
        return -1;
    record_sink_set_progress(d->out.sink, &d->progress);
    return 0;
}

int driver_run(struct driver *d, const struct engine_opts *opts, const struct inputs *inputs, void (*work)(void *),
               void *arg)
{
    /* Each file that htslib reads or writes may start an additional thread during the work. */
    int n_threads = limits_threads(opts->n_threads, inputs->n_threads + (record_sink_form(&opts->out) == SINK_HTSLIB));
    d->progress.file_bytes = (double)inputs->length;
    d->progress.data_bytes = (double)opts->size_hint;
    d->work = work;
    d->arg = arg;
    latch_hide_signals(true);
    task_team(n_threads, in_team, d);
    if (!latch_tripped(d->engine.latch))
        command_report_measure_memory(&d->report);
    return n_threads;
}

void driver_finish(struct driver *d)
{
    struct clocks *clocks = d->engine.clocks;
    clocks_phase(clocks, PHASE_FINISH);
    enum stage before = clocks_enter(clocks, STAGE_WRITE);
    if (!latch_tripped(d->engine.latch))
        written_commit(&d->out);
    clocks_enter(clocks, STAGE_FREE);
    written_close(&d->out);
    clocks_leave(clocks, before, 0);
}

int driver_end(struct driver *d, uint64_t records)
{
    clocks_stop(d->engine.clocks);
    progress_end(&d->progress, !latch_tripped(d->engine.latch), records);
    d->report.counted = d->out.numbers;
    if (!latch_tripped(d->engine.latch))
        command_report_write(&d->report, d->engine.clocks, records, d->engine.latch);
    command_report_close(&d->report);
    clocks_free(d->engine.clocks);
    latch_reraise();
    if (!latch_tripped(d->engine.latch))
        return EXIT_SUCCESS;
    message_error("%s.", d->engine.latch->message);
    return EXIT_FAILURE;
}
