/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include "base/engine.h"
#include "base/latch.h"
#include "base/clocks.h"
#include "base/task_ring.h"
#include "markdup/dup_counts.h"
#include "markdup/marked_losses.h"
#include "markdup/marked_rounds.h"

enum { SHARDS_PER_THREAD = 4 };  /* so that shards with little work make up for one with much */

/* The sets of some keys. Its task uses it; between rounds, the main thread does. */
struct shard {
    struct marked_rounds *rounds;
    uint32_t slot;
    struct dup_sets *sets;
    enum dup_fault fault;
    uint64_t number;             /* number of the record that was entered last */
};

struct marked_rounds {
    struct marked_rounds_options opt;
    struct task_ring sets;
    struct task_ring follow;     /* one slot */
    struct shard *shards;
    struct marked_losses *losses;    /* NULL: only flags are requested */
    enum dup_fault follow_fault; /* written by the follower before DONE */
    struct marked_queue waiting; /* slices of the round or waiting; unchanged during a round except waiting.first */
    size_t entered;              /* waiting.list[] before this index has been entered in all shards */
    enum round_step { ROUND_NONE, ROUND_SETS, ROUND_FOLLOWS } round;
    bool given_all;              /* no more slices will come ... */
    bool settled_all;            /* ... and all losses have been followed, too */
    uint64_t decided;            /* all records before this one are decided */
    size_t memory;               /* bytes of the losses after the last round */
};

static int out_of_memory(const struct marked_rounds *r)
{
    return latch_fail(r->opt.engine->latch, "%s: out of memory", r->opt.path);
}

/* -------------------------------------------------------------------- tasks */

static int lost(void *arg, const struct dup_loss *loss)
{
    struct shard *shard = arg;
    struct marked_rounds *r = shard->rounds;
    uint64_t number = loss->loser.number;
    struct marked_slice *s = marked_queue_find(&r->waiting, number);
    struct dup_counts *counts = &r->opt.counts[task_thread()][loss->loser.group];
    marked_slice_lose(s, number - s->first);
    *(loss->single ? &counts->duplicate_single : &counts->duplicate_pair) += 1;
    return r->losses ? marked_losses_keep(r->losses, shard->slot, loss) : 0;
}

static void enter_shard(void *rounds, uint32_t slot)
{
    struct marked_rounds *r = rounds;
    struct shard *shard = &r->shards[slot];
    if (latch_tripped(r->opt.engine->latch))
        return;
    enum stage before = clocks_enter(r->opt.engine->clocks, STAGE_SORT);
    for (size_t i = r->entered; i < r->waiting.n && !shard->fault; i++)
        shard->fault = marked_slice_enter(r->waiting.list[i].slice, slot, shard->sets, &shard->number);
    clocks_leave(r->opt.engine->clocks, before, 0);
}

/* Follows the losses of the round or, if there are no more records, reports the rest. */
static void follow_losses(void *rounds, uint32_t slot)
{
    struct marked_rounds *r = rounds;
    (void)slot;
    if (latch_tripped(r->opt.engine->latch))
        return;
    enum stage before = clocks_enter(r->opt.engine->clocks, STAGE_PLAN);
    r->follow_fault = r->entered == r->waiting.n ? marked_losses_end(r->losses, &r->waiting)
                    : marked_losses_follow(r->losses, &r->waiting, r->entered);
    clocks_leave(r->opt.engine->clocks, before, 0);
}

/* -------------------------------------------------------------- main thread */

void marked_rounds_begin(struct marked_rounds *r, struct marked_queue *keyed)
{
    while (!marked_queue_is_empty(keyed)) {
        size_t before = r->waiting.first;
        struct marked_slice *s = marked_queue_pop(keyed);
        if (marked_queue_push(&r->waiting, s) < 0) {
            marked_slice_free(s);
            out_of_memory(r);
            return;
        }
        r->entered -= before - r->waiting.first;
    }
    r->round = ROUND_SETS;
    task_ring_hand_out_all(&r->sets);
    task_ring_make_task(&r->sets);
}

/* The record's name in brackets; "" if the record is on disk or being written there. */
static const char *name_in_brackets(struct marked_rounds *r, uint64_t number, char text[UINT8_MAX + 8])
{
    const struct marked_slice *s = marked_queue_is_empty(&r->waiting) ? NULL : marked_queue_find(&r->waiting, number);
    bool is_here = s && s->where == MARKED_HERE && number >= s->first && number - s->first < s->records.n;
    text[0] = 0;
    if (is_here)
        snprintf(text, UINT8_MAX + 8, " (%s)", bam_record_name(
            bam_record_at(bam_key_record(s->records.records.p, s->records.keys[number - s->first]))));
    return text;
}

static int report_number(struct marked_rounds *r, enum dup_fault fault, uint64_t number)
{
    char name[UINT8_MAX + 8];
    return fault == DUP_NO_MEMORY || fault == DUP_STOPPED ? out_of_memory(r)
         : latch_fail(r->opt.engine->latch, "%s: record %llu%s: %s", r->opt.path, (unsigned long long)number + 1,
                      name_in_brackets(r, number, name), dup_fault_text(fault));
}

/* Reports the first record with a fault, as one thread would find it. */
static int report_fault(struct marked_rounds *r)
{
    const struct shard *first = NULL;
    for (uint32_t i = 0; i < r->sets.opt.n_slots; i++)
        if (r->shards[i].fault && (!first || r->shards[i].number < first->number))
            first = &r->shards[i];
    if (!first)
        return 0;
    return report_number(r, first->fault, first->fault == DUP_NO_MATE_SCORE ? dup_sets_culprit(first->sets)
                                                                             : first->number);
}

/* Starts the task that follows the losses, which alone uses the waiting slices. */
static void begin_to_follow(struct marked_rounds *r)
{
    r->round = ROUND_FOLLOWS;
    task_ring_hand_out(&r->follow);
    task_ring_make_task(&r->follow);
}

static void take_all_done(struct task_ring *ring)
{
    while (!task_ring_empty(ring) && task_ring_state(ring, task_ring_oldest(ring)) == TASK_DONE)
        task_ring_take(ring);
}

static size_t memory_of(const struct marked_rounds *r)
{
    return r->losses ? marked_losses_memory(r->losses) : 0;
}

/* Updates how far records are decided, after all shards have finished the round. */
static void decide(struct marked_rounds *r)
{
    r->decided = r->losses ? marked_losses_decided(r->losses) : UINT64_MAX;
    r->memory = memory_of(r);
    for (uint32_t i = 0; i < r->sets.opt.n_slots; i++) {
        uint64_t decided = dup_sets_decided(r->shards[i].sets);
        r->decided = decided < r->decided ? decided : r->decided;
    }
}

static void end_round(struct marked_rounds *r)
{
    r->round = ROUND_NONE;
    decide(r);
    for (; r->entered < r->waiting.n; r->entered++)
        r->opt.entered(r->opt.arg, r->waiting.list[r->entered].slice);
}

static bool all_entered(const struct marked_rounds *r)
{
    return r->given_all && !r->round;
}

/* Continues reporting when the slices that were fully reported have been taken. */
static void go_on_settling(struct marked_rounds *r)
{
    decide(r);
    if (!marked_rounds_final(r, 0))
        begin_to_follow(r);
}

void marked_rounds_go_on(struct marked_rounds *r)
{
    take_all_done(&r->sets);
    take_all_done(&r->follow);
    if (latch_tripped(r->opt.engine->latch) || !task_ring_empty(&r->sets) || !task_ring_empty(&r->follow))
        return;
    if (r->round == ROUND_SETS && report_fault(r) == 0 && r->losses)
        begin_to_follow(r);
    else if (r->round == ROUND_FOLLOWS && r->follow_fault == DUP_PAUSED)
        go_on_settling(r);
    else if (r->round == ROUND_FOLLOWS && r->follow_fault)
        report_number(r, r->follow_fault, marked_losses_culprit(r->losses));
    else if (r->round)
        end_round(r);
    if (!r->settled_all && all_entered(r) && r->losses) {
        r->settled_all = true;
        begin_to_follow(r);
    }
}

size_t marked_rounds_memory(const struct marked_rounds *r, size_t most)
{
    return r->memory < most ? r->memory : most;
}

void marked_rounds_end(struct marked_rounds *r)
{
    r->given_all = true;
}

bool marked_rounds_help(struct marked_rounds *r)
{
    return task_ring_help(&r->sets) || task_ring_help(&r->follow);
}

bool marked_rounds_on(const struct marked_rounds *r)
{
    return r->round != ROUND_NONE;
}

/* Returns whether no record can lose any more and all verdicts are reported. */
static bool all_decided(const struct marked_rounds *r)
{
    return all_entered(r) && (r->settled_all || !r->losses);
}

struct marked_slice *marked_rounds_final(const struct marked_rounds *r, size_t number)
{
    size_t at = r->waiting.first + number;
    struct marked_slice *s = at < r->entered ? r->waiting.list[at].slice : NULL;
    bool is_final = s && !r->opt.keeps && s->first + s->records.n <= r->decided;
    return is_final || all_decided(r) ? s : NULL;
}

void marked_rounds_pop(struct marked_rounds *r)
{
    marked_queue_pop(&r->waiting);
}

bool marked_rounds_done(const struct marked_rounds *r)
{
    return all_decided(r) && marked_queue_is_empty(&r->waiting);
}

uint32_t marked_rounds_shards(const struct marked_rounds *r)
{
    return r->sets.opt.n_slots;
}

/* ---------------------------------------------------------- open and close */

static int open_rings(struct marked_rounds *r)
{
    int n = r->opt.engine->n_threads;
    struct task_ring_options sets = {.n_slots = n > 1 ? SHARDS_PER_THREAD * (uint32_t)n : 1, .n_threads = n,
                                     .large_batches = n > 0, .run = enter_shard, .arg = r};
    struct task_ring_options follow = {.n_slots = 1, .run = follow_losses, .arg = r};
    return task_ring_open(&r->sets, &sets) < 0 || task_ring_open(&r->follow, &follow) < 0 ? -1 : 0;
}

static int open_shards(struct marked_rounds *r)
{
    uint32_t n = r->sets.opt.n_slots;
    if (!(r->shards = calloc(n, sizeof *r->shards)))
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        r->shards[i].rounds = r;
        r->shards[i].slot = i;
        if (!(r->shards[i].sets = dup_sets_new(r->opt.window, r->opt.follows, lost, &r->shards[i])))
            return -1;
    }
    if (r->opt.follows && !(r->losses = marked_losses_open(&r->opt.chains, n, r->opt.step)))
        return -1;
    r->memory = memory_of(r);
    return 0;
}

struct marked_rounds *marked_rounds_open(const struct marked_rounds_options *options)
{
    struct marked_rounds *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->opt = *options;
    if (open_rings(r) == 0 && open_shards(r) == 0)
        return r;
    marked_rounds_close(r);
    return NULL;
}

void marked_rounds_close(struct marked_rounds *r)
{
    if (!r)
        return;
    bool well = !latch_tripped(r->opt.engine->latch);
    task_ring_close(&r->sets, well);
    task_ring_close(&r->follow, well);
    marked_losses_close(r->losses);
    for (uint32_t i = 0; r->shards && i < r->sets.opt.n_slots; i++)
        dup_sets_free(r->shards[i].sets);
    free(r->shards);
    marked_queue_free(&r->waiting);
    free(r);
}
