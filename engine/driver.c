/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "base/message.h"
#include "base/stats.h"
#include "base/task_ring.h"
#include "engine/driver.h"
#include "engine/limits.h"
#include "engine/engine_opts.h"
#include "read/input.h"
#include "write/record_sink.h"

/* A signal ends the work here: threads would be waited for at the end of the parallel region, and one may be stuck in
 * writing to a pipe that nobody reads. */
static void in_team(void *driver)
{
    struct driver *d = driver;
    latch_hide_signals(false);
    d->work(d->arg);
    if (!latch_signalled())
        return;
    progress_end(&d->progress, false);
    written_abandon(&d->out);
    command_report_close(&d->report);
    latch_reraise();
}

struct stats *driver_begin(struct driver *d, const struct engine_opts *opts)
{
    d->stats = stats_new(opts->n_threads, command_report_detail(&opts->report));
    stats_phase(d->stats, PHASE_OPEN);
    if (d->stats)
        progress_start(&d->progress, opts->progress, d->stats);
    else
        latch_fail(d->latch, "out of memory");
    return d->stats;
}

int driver_open(struct driver *d, const struct engine_opts *opts, const struct memory_rings *rings)
{
    if (!driver_begin(d, opts)
        || written_open(&d->out, &opts->out, rings, engine_opts_input(opts), d->latch, d->stats) < 0)
        return -1;
    record_sink_set_progress(d->out.sink, &d->progress);
    return 0;
}

int driver_run(struct driver *d, const struct engine_opts *opts, const struct inputs *inputs, void (*work)(void *),
               void *arg)
{
    /* Each file that htslib reads or writes may start one more thread during the work. */
    int n_threads = limits_threads(opts, inputs->n_threads + (record_sink_form(&opts->out) == SINK_HTSLIB));
    d->work = work;
    d->arg = arg;
    latch_hide_signals(true);
    task_team(n_threads, in_team, d);
    return n_threads;
}

void driver_finish(struct driver *d)
{
    stats_phase(d->stats, PHASE_FINISH);
    if (!latch_tripped(d->latch))
        written_commit(&d->out);
    written_close(&d->out);
}

void driver_forget(struct driver *d)
{
    progress_end(&d->progress, false);
    stats_free(d->stats);
    d->stats = NULL;
    d->out = (struct written){0};
    *d->latch = (struct latch){0};
}

int driver_end(struct driver *d, uint64_t records)
{
    stats_stop(d->stats);
    progress_end(&d->progress, !latch_tripped(d->latch));
    d->report.counted = d->out.numbers;
    if (!latch_tripped(d->latch))
        command_report_write(&d->report, d->stats, records, d->latch);
    command_report_close(&d->report);
    stats_free(d->stats);
    latch_reraise();
    if (!latch_tripped(d->latch))
        return EXIT_SUCCESS;
    message_error("%s.", d->latch->message);
    return EXIT_FAILURE;
}
