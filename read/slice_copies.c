/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "bam/record_fault.h"
#include "base/engine.h"
#include "base/latch.h"
#include "base/clocks.h"
#include "codec/bgzf_block.h"
#include "order/sort_key.h"
#include "read/input.h"
#include "read/slice_copies.h"

/* A span that is copied. The main thread fills it, except the walk, which the task fills. */
struct copied_span {
    struct slice_span span;
    uint64_t start;              /* offset of the span in the arena */
    uint64_t number;             /* number of its first record in the input, counted from 1 */
    uint64_t offset;             /* offset of its slice; copied here because the slice is reused when the span is
                                  * released */
    struct bam_key *place;       /* place of its keys */
    struct bam_walk walk;
};

static void copy(void *copies, uint32_t slot)
{
    const struct slice_copies *s = copies;
    struct copied_span *c = &s->copied[slot];
    const struct slice_span *span = &c->span;
    if (latch_tripped(s->opt.engine->latch))
        return;
    enum stage before = clocks_enter(s->opt.engine->clocks, STAGE_FIND);
    memcpy(s->arena->base + c->start, span->bytes, span->size);
    const struct bam_key *known = s->keyed ? span->slice->keys + span->first : NULL;
    c->walk = bam_arena_take_known(s->arena, c->start, c->start + span->size, known, span->n, c->place);
    if (c->walk.n_fix && bam_arena_fix(s->arena, c->place, c->walk.n, &c->walk.checksum) < 0)
        latch_fail(s->opt.engine->latch, "%s: out of memory while normalising a CIGAR", s->in->name);
    slice_span_release(span);
    bool is_counted = s->in->stream.has_keys;    /* the producer before this one found the records, and counted them */
    clocks_leave(s->opt.engine->clocks, before, is_counted ? 0 : span->size);
}

static bool help_copy(void *copies)
{
    return task_ring_help(&((struct slice_copies *)copies)->ring);
}

int slice_copies_peek(struct slice_copies *s, size_t *size)
{
    enum chunk_state state = slice_feed_await(&s->feed, help_copy, s);
    *size = s->feed.span.size;
    return latch_tripped(s->opt.engine->latch) || state == CHUNK_FAILED ? -1 : state == CHUNK_MADE;
}

void slice_copies_learn(const struct slice_copies *s, struct sort_rule *rule, size_t most)
{
    const struct slice_span *span = &s->feed.span;
    sort_rule_learn_of(rule, span->bytes, span->size < most ? span->size : most, s->arena->n_ref);
}

void slice_copies_hand_out(struct slice_copies *s, uint64_t start)
{
    struct copied_span *c = &s->copied[task_ring_next(&s->ring)];
    struct bam_arena *a = s->arena;
    *c = (struct copied_span){.span = slice_feed_take(&s->feed), .start = start,
                              .number = a->n_records - a->n_before + 1};
    c->offset = c->span.slice->offset;
    c->place = bam_arena_list(a, c->span.n);
    task_ring_hand_out(&s->ring);
}

/* Accepts a copied span: all its records are in the arena, or the next record is broken. */
static int accept(struct slice_copies *s, const struct copied_span *c)
{
    const struct bam_walk *w = &c->walk;
    struct bam_arena *a = s->arena;
    a->checksum += w->checksum;
    tally_add(&s->taken, (struct tally){.n = w->n, .checksum = w->checksum});
    a->beyond |= w->beyond;
    if (!s->in->stream.is_reordered)
        clocks_records(s->opt.engine->clocks, w->n);
    s->offset = c->offset;
    if (w->end == c->start + c->span.size)
        return 0;
    if (!w->fault)
        return latch_fail(s->opt.engine->latch, "%s: records %llu to %llu have fewer bytes than their slice. "
                          "Memory may be faulty, or this is our bug: please report it", s->in->name,
                          (unsigned long long)c->number, (unsigned long long)(c->number + w->n - 1));
    struct record_place at = {s->in->name, c->number + w->n, a->origin + w->end, s->offset};
    if (w->fault == BAM_CUT)
        return record_fault_report_cut(s->opt.engine->latch, &at, true);
    return record_fault_report(s->opt.engine->latch, &at, w->fault, a->base + w->end);
}

int slice_copies_take(struct slice_copies *s, bool wait)
{
    uint32_t slot = task_ring_oldest(&s->ring);
    if (task_ring_empty(&s->ring) || (!wait && task_ring_state(&s->ring, slot) != TASK_DONE))
        return 0;
    task_ring_wait(&s->ring, slot, TASK_DONE, NULL, s->opt.engine->clocks);
    bool failed = latch_tripped(s->opt.engine->latch) || accept(s, &s->copied[slot]) < 0;
    task_ring_take(&s->ring);
    return failed ? -1 : 1;
}

int slice_copies_end(const struct slice_copies *s)
{
    return record_stream_end(&s->in->stream, s->taken, "on the way into the sort", s->in->name, s->opt.engine->latch);
}

/* ---------------------------------------------------------- open and close */

int slice_copies_open(struct slice_copies *s, const struct slice_copies_options *options)
{
    struct task_ring_options ring = {.n_slots = options->n_slots, .run = copy, .arg = s};
    *s = (struct slice_copies){.opt = *options};
    s->copied = calloc(options->n_slots, sizeof *s->copied);
    return s->copied && task_ring_open(&s->ring, &ring) == 0 ? 0 : -1;
}

void slice_copies_close(struct slice_copies *s)
{
    slice_feed_close(&s->feed);
    task_ring_close(&s->ring, s->copied && !latch_tripped(s->opt.engine->latch));
    free(s->copied);
    s->copied = NULL;
}

/* Returns the largest size of a span. Spans may be large, but the unused rest of a full arena must be small. */
static size_t span_size(const struct bam_arena *arena)
{
    enum { SHARE = 32, MOST = 1 << 20 };
    size_t share = arena->size / SHARE;
    return share < BGZF_FILL ? BGZF_FILL : share < MOST ? share : MOST;
}

int slice_copies_begin(struct slice_copies *s, const struct input *in, struct bam_arena *arena)
{
    slice_feed_close(&s->feed);
    s->in = in;
    s->arena = arena;
    s->offset = 0;
    s->taken = (struct tally){.n = 0};
    s->keyed = in->stream.has_keys && !arena->rule;
    return slice_feed_open(&s->feed, &in->stream, s->opt.n_lent, span_size(arena), s->opt.engine) < 0
         ? latch_fail(s->opt.engine->latch, "out of memory") : 0;
}

size_t slice_copies_slot_memory(void)
{
    return sizeof(struct copied_span) + task_ring_memory(1);
}
