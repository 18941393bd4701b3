/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "base/latch.h"
#include "base/version.h"
#include "order/collate_key.h"
#include "sormadup/collated.h"
#include "engine/memory_plan.h"
#include "engine/engine_memory.h"
#include "write/written.h"

/* ------------------------------------------------------------------ stream */

int collated_stop(const struct collated *c)
{
    if (latch_failed(&c->sort.latch))
        latch_fail(&c->behind->latch, "%s", c->sort.latch.message);
    return -1;
}

static enum chunk_state advance(void *collated)
{
    struct collated *c = collated;
    enum chunk_state state = sorted_source_advance(&c->source);
    bool failed = state == CHUNK_FAILED
               || (state == CHUNK_NONE && sorted_source_end(&c->source, &c->behind->latch) < 0);
    return failed ? (enum chunk_state)collated_stop(c) : state;
}

static int take(void *collated, struct record_slice *slice)
{
    struct collated *c = collated;
    return sorted_source_take(&c->source, slice) < 0 ? collated_stop(c) : 0;
}

static bool help(void *collated)
{
    return merge_ring_help(((struct collated *)collated)->sort.merge);
}

/* ---------------------------------------------------------- open and close */

/* Bytes of what the sort behind has at one time, and of what is copied for it. */
static size_t lent_memory(const struct memory_rings *behind)
{
    return (behind->sam.n_lent + behind->merge_ranges) * (size_t)SORTED_SLICE;
}

/* Of the sort in front: half of what the one behind leaves for arenas. The inputs are open, with those rings. */
static struct memory_rings divide(const struct engine_opts *behind, const struct memory_rings *rings,
                                  const struct inputs *in, struct output_use output)
{
    size_t fixed = engine_memory_plan_any(rings, behind, in, output).fixed;
    struct memory_job job = rings->job;
    job.all = job.all > fixed ? (job.all - fixed) / 2 : 0;
    job.level = 0;
    job.within = true;
    struct memory_rings ours = memory_plan_rings(&job);
    ours.source_slots = rings->source_slots;
    ours.sam = rings->sam;
    return ours;
}

size_t collated_memory(const struct engine_opts *behind, const struct memory_rings *rings, const struct inputs *in,
                       struct output_use output)
{
    struct memory_rings ours = divide(behind, rings, in, output);
    struct output_use lent = {.beside = lent_memory(rings)};
    struct memory_plan plan = engine_memory_plan_any(&ours, behind, in, lent);
    return (size_t)memory_plan_takes(&plan);
}

static int open_sort(struct collated *c, size_t beside)
{
    struct sorted *behind = c->behind;
    struct output_use output = sorted_output(behind);
    output.beside += beside;
    struct memory_rings rings = divide(behind->opts, &behind->rings, &behind->in, output);
    struct sorted_options how = {
        .opts = &c->opts,
        .in = &c->opts.in,
        .part = c->whole = calloc(behind->in.n, sizeof *c->whole),
        .size_hint = behind->opts->size_hint,
        .rings = &rings,
        .stats = behind->stats,
        .progress = behind->progress,
    };
    c->opts = *behind->opts;
    c->opts.order = (struct sort_order){.by = SORT_COLLATE, .n_bins = COLLATE_BINS};
    c->opts.memory_beside = 1;                   /* more is no error here */
    c->opts.in.reference = NULL;                 /* it is open, and was warned of */
    if (!c->whole)
        return latch_fail(&behind->latch, "out of memory");
    for (size_t i = 0; i < behind->in.n; i++)
        c->whole[i] = (struct input_part){.opened = &behind->in.each[i], .is_last = true,
                                          .beside = lent_memory(&behind->rings)};
    return sorted_open(&c->sort, &how, NULL) < 0 ? collated_stop(c) : 0;
}

int collated_open(struct collated *c, struct sorted *behind, size_t beside, const char *command_line)
{
    *c = (struct collated){.behind = behind};
    if (open_sort(c, beside) < 0)
        return -1;
    if (bam_header_mark_sorted(c->sort.sam, &c->opts.order, false, version_of_both(), command_line) < 0)
        return latch_fail(&behind->latch, "%s: the header could not be changed", engine_opts_input(behind->opts));
    c->part = (struct input_part){.sam = c->sort.sam, .stream = {advance, take, help, NULL, c}, .collated = true};
    struct inputs_options how = engine_memory_inputs(behind->opts, &behind->opts->in, &behind->rings, &behind->latch,
                                                        behind->stats);
    if (input_open(behind->in.each, behind->opts->in.paths[0], &c->part, &how) < 0)
        return -1;
    behind->sam = behind->in.each->header.sam;
    behind->in.n = 1;
    behind->in.n_sam = 0;                        /* it is parsed by this sort */
    return 0;
}

void collated_finish(struct collated *c, int n_threads)
{
    if (!c->behind)
        return;
    if (latch_tripped(&c->behind->latch))        /* or what is under way would be missed */
        latch_fail(&c->sort.latch, "%s", c->behind->latch.message);
    sorted_finish(&c->sort, n_threads);
}

void collated_close(struct collated *c)
{
    free(c->whole);
    sorted_source_close(&c->source);
    c->whole = NULL;
}
