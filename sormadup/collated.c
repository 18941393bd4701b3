/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdlib.h>
#include "base/latch.h"
#include "base/stats.h"
#include "base/version.h"
#include "order/collate_key.h"
#include "sormadup/collated.h"
#include "engine/memory_plan.h"
#include "engine/engine_memory.h"
#include "write/written.h"

struct lent_slice {
    struct record_slice records;
    atomic_int users;
};

/* ------------------------------------------------------------------ window */

int collated_stop(const struct collated *c)
{
    if (latch_failed(&c->sort.latch))
        latch_fail(&c->behind->latch, "%s", c->sort.latch.message);
    return -1;
}

/* 1: the window has records; 0: it is still empty; -1: failed. */
static int lend(struct collated *c, struct lent_slice *next)
{
    struct byte_window *w = &c->window;
    if (sorted_source_take(&c->source, &next->records) < 0)
        return collated_stop(c);
    w->data = next->records.records.p;
    w->size = next->records.records.n;
    w->users = &next->users;
    c->current++;
    return w->size > 0;
}

static void idle(const struct collated *c, unsigned *spins)
{
    enum stage before = stats_enter(c->sort.stats, STAGE_WAIT);
    task_pause(spins);
    stats_leave(c->sort.stats, before, 0);
}

/* Who reads it leaves nothing in it. */
static int more(struct byte_window *window, task_help_fn *help, void *arg)
{
    struct collated *c = (struct collated *)window;
    assert(window->size == 0);
    byte_window_leave(window);
    for (unsigned spins = 0; !latch_tripped(&c->behind->latch);) {
        struct lent_slice *next = &c->lent[(c->current + 1) % c->n_lent];
        enum chunk_state state = sorted_source_advance(&c->source);
        if (state == CHUNK_NONE)
            return sorted_source_end(&c->source, &c->behind->latch);
        if (state == CHUNK_FAILED)
            return collated_stop(c);
        int lent = 0;
        if (state == CHUNK_MADE && atomic_load_explicit(&next->users, memory_order_acquire) == 0)
            lent = lend(c, next);
        if (lent)
            return lent;
        if (help(arg) || merge_ring_help(c->sort.merge))
            spins = 0;
        else
            idle(c, &spins);
    }
    return -1;
}

/* ---------------------------------------------------------- open and close */

static uint32_t count_lent(int n_threads)
{
    return 4 + (uint32_t)n_threads / 4;
}

/* Bytes of what is lent, and of what is copied to be lent. */
static size_t lent_memory(const struct memory_rings *behind)
{
    return (count_lent(behind->job.n_threads) + behind->merge_ranges) * SORTED_SLICE;
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
    c->n_lent = count_lent(c->opts.n_threads);
    c->lent = calloc(c->n_lent, sizeof *c->lent);
    if (!c->lent || !c->whole)
        return latch_fail(&behind->latch, "out of memory");
    for (size_t i = 0; i < behind->in.n; i++)
        c->whole[i] = (struct input_part){.opened = &behind->in.each[i], .is_last = true,
                                          .beside = lent_memory(&behind->rings)};
    return sorted_open(&c->sort, &how, NULL) < 0 ? collated_stop(c) : 0;
}

int collated_open(struct collated *c, struct sorted *behind, size_t beside, const char *command_line)
{
    *c = (struct collated){.behind = behind, .window.more = more};
    if (open_sort(c, beside) < 0)
        return -1;
    if (bam_header_mark_sorted(c->sort.sam, &c->opts.order, false, version_of_both(), command_line) < 0)
        return latch_fail(&behind->latch, "%s: the header could not be changed", engine_opts_input(behind->opts));
    c->part = (struct input_part){.sam = c->sort.sam, .window = &c->window, .collated = true};
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
    for (uint32_t i = 0; c->lent && i < c->n_lent; i++)
        record_slice_free(&c->lent[i].records);
    free(c->lent);
    free(c->whole);
    sorted_source_close(&c->source);
    c->lent = NULL;
    c->whole = NULL;
}
