/* SPDX-License-Identifier: MIT */
/* The driver of `sormadup`: fixmate, sort and markdup as one. Its steps, each of which takes the records of the one
 * before it:
 *
 *   read      the inputs                      blocks, lines or containers (read/)
 *   collate   groups records by name          a sort of its own (collated.h); only if they are not grouped
 *   fixmate   fixes templates                 chunks, fixed by tasks (fixed_inputs.h)
 *   sort      by coordinate                   arenas, sublists, runs (sort/sorted.h); merged to slices
 *   markdup   marks duplicates                slices that wait for their sets (markdup/marking.h)
 *   write     the file, and its index         blocks (write/written.h)
 */
#include "sormadup/bam_sormadup.h"
#include "bam_sort.h"
#include "base/engine.h"
#include "base/machine.h"
#include "base/clocks.h"
#include "base/version.h"
#include "engine/driver.h"
#include "engine/engine_memory.h"
#include "markdup/marking.h"
#include "sormadup/collated.h"
#include "sormadup/fixed_inputs.h"
#include "sormadup/orphans.h"
#include "sormadup/sormadup.h"
#include "sormadup/sormadup_memory.h"
#include "sormadup/sormadup_opts.h"
#include "sormadup/sorted_stream.h"

struct sormadup {
    const struct sormadup_opts *opts;
    const struct engine_opts *common;    /* of all producers */
    struct driver *d;            /* has the output */
    struct memory_rings rings;
    struct sormadup_use use;     /* set when the inputs are open */
    int held;                    /* references whose full length the output must hold: inputs_held() */
    struct inputs in;            /* what the next producer reads; each open_*() replaces it by its own stream */
    struct collated collated;
    struct fixed_inputs fixed;
    struct orphans *orphans;     /* hashes of reads whose mate is not beside them. If both reads of a pair are
                                  * there, the input is not grouped */
    struct sorted sorted;
    struct sorted_stream merged;
    struct record_stream in_order;   /* the records of `merged` */
    struct marking marking;
};

static const char *path_of(const struct sormadup *c)
{
    return engine_opts_input(c->common);
}

/* Adds a @PG line, unless the user forbids it. */
static int add_step_line(const struct sormadup *c, sam_hdr_t *sam, const char *command_line)
{
    if (c->common->out.no_pg || !command_line
        || bam_header_mark_sorted(sam, NULL, false, version_of_both(), command_line) == 0)
        return 0;
    return latch_fail(c->d->engine.latch, "%s: the header could not be changed", path_of(c));
}

/* ---------------------------------------------------------- opening the producers */

static int open_output(struct sormadup *c)
{
    c->rings = engine_memory_rings(c->common, &c->common->in, MEMORY_IN_TURN, true);
    return driver_open(c->d, c->common, &c->rings);
}

static int open_inputs(struct sormadup *c)
{
    struct inputs_options how = engine_memory_inputs(c->common, &c->common->in, &c->rings, &c->d->engine);
    if (inputs_open(&c->in, &how) < 0)
        return -1;
    sam_hdr_t *sam = c->in.each->header.sam;
    int collates = sormadup_collates(c->opts, &c->in, c->d->engine.latch);
    c->use = (struct sormadup_use){c->common, c->in, written_use(&c->common->out, sam, &c->rings), collates > 0};
    c->held = inputs_held(&c->in, sam, true);
    return collates < 0 ? -1 : add_step_line(c, sam, c->opts->cat_line);
}

static int open_collated(struct sormadup *c)
{
    struct collated_options how = {
        .behind = c->common,
        .rings = &c->rings,
        .output = c->use.output,
        .command_line = c->common->out.no_pg ? NULL : c->opts->collate_line,
        .engine = &c->d->engine,
        .progress = &c->d->progress,
    };
    return c->use.collates ? collated_open(&c->collated, &c->in, &how) : 0;
}

/* The search for orphans uses the memory that markdup will need only after the search has ended. */
static int open_fixed(struct sormadup *c)
{
    struct orphans_options search = {
        .store = engine_opts_store(c->common, &c->d->engine),
        .memory = sormadup_memory_marking(&c->rings),
        .path = path_of(c),
    };
    struct fixed_inputs_options how = {
        .rules = &c->opts->fixmate,
        .orphans = orphans_put,
        .orphans_arg = c->orphans = orphans_open(&search),
        .memory = c->rings.chunks,
        .engine = &c->d->engine,
    };
    return c->orphans ? fixed_inputs_open(&c->fixed, &c->in, &how) : -1;
}

static int open_sort(struct sormadup *c)
{
    struct sorted_options how = {
        .opts = c->common,
        .in = &c->common->in,
        .opened = &c->in,
        .size_hint = c->common->size_hint,
        .rings = &c->rings,
        .output = c->use.output,
        .engine = &c->d->engine,
        .progress = &c->d->progress,
    };
    how.output.more = sormadup_overhead;
    how.output.arg = &c->use;
    return sorted_open(&c->sorted, &how);
}

static int prepare_output(struct sormadup *c)
{
    return written_prepare(&c->d->out, c->sorted.sam, c->held, c->sorted.rule);
}

/* ------------------------------------------------------------- running them */

/* Adds the @PG lines of the steps that have none yet; written_header() adds the last one. */
static int put_header(struct sormadup *c)
{
    const struct sormadup_opts *o = c->opts;
    const struct sorted *s = &c->sorted;
    if (add_step_line(c, s->sam, c->use.collates ? o->collated_line : o->fixmate_line) < 0
        || add_step_line(c, s->sam, o->sort_line) < 0)
        return -1;
    return written_header(&c->d->out, s->sam, &c->common->order, arenas_unplaced(&s->arenas),
                          arenas_beyond(&s->arenas));
}

static int begin_marking(struct sormadup *c)
{
    if (sorted_stream_begin(&c->merged, &c->sorted) < 0)
        return -1;
    c->in_order = sorted_stream_records(&c->merged);
    struct marking_options marking = {
        .opts = &c->opts->markdup,
        .source = &c->in_order,
        .sam = c->sorted.sam,
        .slice_size = SORTED_SLICE,
        .left = sormadup_memory_marking(&c->rings) - sormadup_memory_least(c->common->n_threads),
        .d = c->d,
    };
    return marking_open(&c->marking, &marking);
}

static void mark_and_write(struct sormadup *c)
{
    struct list_stream stream = marking_stream(&c->marking);
    clocks_phase(c->d->engine.clocks, PHASE_WRITE);
    if (put_header(c) == 0 && begin_marking(c) == 0)
        written_all(&c->d->out, &stream);
}

static void work(void *sormadup)
{
    struct sormadup *c = sormadup;
    if (collated_read(&c->collated) == 0 && bam_sort_read(&c->sorted) == 0 && orphans_end(c->orphans) == 0)
        mark_and_write(c);
}

static void finish(struct sormadup *c, int n_threads)
{
    sorted_finish(&c->sorted, n_threads, c->d);  /* names the output */
    collated_finish(&c->collated, n_threads);
    marking_close(&c->marking);
    sorted_stream_close(&c->merged);
    fixed_inputs_close(&c->fixed);
    orphans_close(c->orphans);
    inputs_close(&c->in);
}

int bam_sormadup(const struct sormadup_opts *opts)
{
    struct latch latch = {0};
    struct driver d = {.engine.latch = &latch};
    struct sormadup c = {.opts = opts, .common = &opts->common, .d = &d, .sorted.engine = &d.engine};
    int n_threads = 1;
    machine_share_heaps();
    if (command_report_open(&d.report, &opts->common.report, &latch) == 0
        && open_output(&c) == 0 && open_inputs(&c) == 0 && open_collated(&c) == 0 && open_fixed(&c) == 0
        && open_sort(&c) == 0 && prepare_output(&c) == 0) {
        n_threads = driver_run(&d, &opts->common, &c.use.in, work, &c);
        if (!latch_tripped(&latch))
            command_report_measure_memory(&d.report);
    }
    uint64_t records = c.sorted.arenas.filled ? c.sorted.arenas.filled->n_records : 0;
    finish(&c, n_threads);
    return driver_end(&d, records);
}
