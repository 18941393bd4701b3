/* SPDX-License-Identifier: MIT */
#include "bam_sort.h"
#include "base/engine.h"
#include "base/latch.h"
#include "base/version.h"
#include "order/collate_key.h"
#include "sormadup/collated.h"
#include "sormadup/sormadup_memory.h"
#include "engine/memory_plan.h"
#include "engine/engine_memory.h"

/* Bytes of the slices that the next sort holds at one time, and of the copies for it. */
static size_t lent_memory(const struct memory_rings *behind)
{
    return (behind->chunks.n_lent + behind->merge_ranges) * (size_t)SORTED_SLICE;
}

/* The rings of the first sort: half of the memory that the next one leaves for arenas. The inputs are open, with those
 * rings. */
static struct memory_rings divide(const struct engine_opts *behind, const struct memory_rings *rings,
                                  const struct inputs *in, struct output_use output)
{
    output.overhead += sormadup_memory_marking(rings);
    size_t fixed = engine_memory_plan_any(rings, behind, in, output).fixed;
    struct memory_job job = rings->job;
    job.all = job.all > fixed ? (job.all - fixed) / 2 : 0;
    job.level = 0;
    job.within = true;
    struct memory_rings ours = memory_plan_rings(&job);
    ours.source_slots = rings->source_slots;
    ours.chunks = rings->chunks;
    return ours;
}

size_t collated_memory(const struct engine_opts *behind, const struct memory_rings *rings, const struct inputs *in,
                       struct output_use output)
{
    struct memory_rings ours = divide(behind, rings, in, output);
    struct output_use lent = {.overhead = lent_memory(rings)};
    struct memory_plan plan = engine_memory_plan_any(&ours, behind, in, lent);
    return (size_t)memory_plan_takes(&plan);
}

int collated_open(struct collated *c, struct inputs *in, const struct collated_options *options)
{
    const struct engine_opts *behind = options->behind;
    struct memory_rings rings = divide(behind, options->rings, in, options->output);
    struct sorted_options how = {
        .opts = &c->opts,
        .in = &c->opts.in,
        .opened = in,
        .size_hint = behind->size_hint,
        .rings = &rings,
        .output = {.overhead = lent_memory(options->rings)},
        .engine = options->engine,
        .progress = options->progress,
    };
    c->opts = *behind;
    c->opts.order = (struct sort_order){.by = SORT_COLLATE, .n_bins = COLLATE_BINS};
    c->opts.memory_overhead = 1;                 /* A larger request is reduced, not refused. */
    if (sorted_open(&c->sort, &how) < 0)
        return -1;
    if (bam_header_mark_sorted(c->sort.sam, &c->opts.order, false, version_of_both(), options->command_line) < 0)
        return latch_fail(options->engine->latch, "%s: the header could not be changed", engine_opts_input(behind));
    if (inputs_of_stream(in, &c->sort.in, sorted_slices_stream(&c->merged), c->sort.sam) < 0)
        return latch_fail(options->engine->latch, "out of memory");
    in->n_chunked = 0;                           /* this sort parses them */
    return 0;
}

int collated_read(struct collated *c)
{
    if (!c->sort.engine)
        return 0;
    return bam_sort_read(&c->sort) < 0 || sorted_slices_begin(&c->merged, &c->sort) < 0 ? -1 : 0;
}

void collated_finish(struct collated *c, int n_threads)
{
    if (c->sort.engine)
        sorted_finish(&c->sort, n_threads, NULL);
    sorted_slices_close(&c->merged);
}
