/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "bam/bam_header.h"
#include "base/clocks.h"
#include "base/engine.h"
#include "markdup/markdup_opts.h"
#include "markdup/marked.h"
#include "engine/memory_plan.h"
#include "engine/engine_memory.h"
#include "write/record_sink.h"
#include "write/written.h"

/* -------------------------------------------------------------------- open */

static const struct engine_opts *common(const struct marked *m)
{
    return &m->opts->common;
}

static int out_of_memory(struct marked *m)
{
    return latch_fail(m->d->engine.latch, "%s: out of memory", engine_opts_input(common(m)));
}

/* Refuses an input that is sorted by name. Checks only the header, as samtools does. */
static int check_order(struct marked *m)
{
    int by_name = m->in.each->header.is_broken ? 0 : bam_header_says(m->sam, "queryname");
    if (by_name <= 0)
        return by_name < 0 ? out_of_memory(m) : 0;
    return latch_fail(m->d->engine.latch, "%s: it is sorted by name, and must be sorted by coordinate. Nothing was "
                      "written; use samtools sort first", engine_opts_input(common(m)));
}

static int open_input(struct marked *m)
{
    const struct engine_opts *o = common(m);
    struct inputs_options how = engine_memory_inputs(o, &o->in, &m->rings, &m->d->engine);
    how.waits = true;
    how.keeps_broken = true;
    if (inputs_open(&m->in, &how) < 0)
        return -1;
    m->sam = m->in.each->header.sam;
    if (check_order(m) < 0)
        return -1;
    if (written_takes_reference(&o->out.format) && !(m->lengths = bam_header_lengths(m->sam)))
        return out_of_memory(m);
    m->request.lengths = m->lengths;
    m->in.each->merge = &m->request;
    return 0;
}

static size_t overhead(const void *none, const struct memory_rings *rings)
{
    (void)none;
    return marked_flow_memory(rings->job.n_threads, rings->chunks.records_size);
}

struct output_use marked_use(struct output_use files)
{
    files.more = overhead;
    return files;
}

static void divide_memory(struct marked *m, const struct markdup_opts *opts)
{
    m->opts = opts;
    m->rings = engine_memory_rings(&opts->common, &opts->common.in, MEMORY_AT_ONCE, true);
}

int marked_look(struct marked *m, const struct markdup_opts *opts)
{
    divide_memory(m, opts);
    return open_input(m);
}

/* The bytes that the plan leaves over are for waiting records, too. */
static size_t left_by(const struct memory_plan *plan)
{
    uint64_t all = plan->rings.job.all;
    return all > plan->fixed ? (size_t)(all - plan->fixed) : 0;
}

size_t marked_room(const struct memory_plan *plan)
{
    return marking_room(plan->rings.job.n_threads, plan->rings.chunks.records_size, left_by(plan));
}

static int open_marking(struct marked *m)
{
    const struct engine_opts *o = common(m);
    struct memory_plan plan;
    struct output_use output = marked_use(written_use(&o->out, m->sam, &m->rings));
    if (engine_memory_plan(&plan, &m->rings, o, &m->in, output, m->d->engine.latch) < 0
        || (m->in.each->header.is_broken && written_keep_header(&m->d->out, &m->in.each->header, false) < 0)
        || written_prepare(&m->d->out, m->sam, inputs_held(&m->in, m->sam, false), NULL) < 0)
        return -1;
    struct marking_options how = {
        .opts = m->opts,
        .source = &m->in.each->stream,
        .sam = m->sam,
        .is_broken = m->in.each->header.is_broken,
        .slice_size = m->rings.chunks.records_size,
        .left = left_by(&plan),
        .d = m->d,
    };
    return marking_open(&m->marking, &how);
}

int marked_open(struct marked *m, const struct markdup_opts *opts)
{
    divide_memory(m, opts);
    return driver_open(m->d, &opts->common, &m->rings) < 0 || open_input(m) < 0 ? -1 : open_marking(m);
}

int marked_begin(struct marked *m)
{
    return input_begin(m->in.each);
}

void marked_look_end(struct marked *m)
{
    inputs_close(&m->in);
    free(m->lengths);
}

void marked_finish(struct marked *m)
{
    driver_finish(m->d);
    marking_close(&m->marking);
    marked_look_end(m);
}
