/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "read/block_reader.h"
#include "codec/bgzf_block.h"
#include "base/latch.h"
#include "base/machine.h"
#include "base/progress.h"
#include "order/sort_key.h"
#include "base/stats.h"

enum {
    BLOCK_KEYS = BGZF_MAX_BLOCK / BAM_MIN_RECORD + 1,
    /* What the shape of names is learned from: one block's worth. */
    SAMPLE_BYTES = BGZF_FILL,
    SAMPLE_RECORDS = 256,
};

/* What an inflate task found in its block, by ring slot. Written by the task,
 * read by the master once it has taken the block back. The keys stay here until the
 * slot's next task copies them to their place: the master only counts them. */
struct found {
    struct bam_walk walk;
    struct bam_key *place;       /* where the keys belong, NULL: they are there; master, then the next task */
    struct bam_key keys[BLOCK_KEYS];
};

/* Lists are found by the slots of sources, and keys are waited for as long as a source has slots. */
static void assert_slots(const struct arena_fill *f)
{
    for (size_t i = 0; i < f->opt.inputs->n; i++)
        assert(bgzf_source_slots(f->opt.inputs->each[i].source) == f->opt.n_slots);
    assert(f->opt.memory->opt.plan.rings.source_slots == f->opt.n_slots);
}

int arena_fill_open(struct arena_fill *f, const struct arena_fill_options *options)
{
    *f = (struct arena_fill){.opt = *options, .in = options->inputs->each};
    if ((f->found = calloc(options->n_slots, sizeof *f->found)))
        return 0;
    return latch_fail(options->latch, "out of memory");
}

void arena_fill_close(struct arena_fill *f)
{
    free(f->found);
    f->found = NULL;
}

size_t arena_fill_slot_memory(void)
{
    return sizeof(struct found);
}

double arena_fill_expected(void *arg)
{
    const struct arena_fill *f = arg;
    const struct bam_arena *a = f->opt.memory->arena;
    if (f->opt.size_hint)
        return (double)f->opt.size_hint;
    bool known;
    double files = (double)sort_inputs_size(f->opt.inputs, &known), so_far = (double)(a->origin + a->walked);
    return known && f->last_block ? files / (double)f->last_block * so_far : 0;
}

/* No block is larger than what it holds. */
uint64_t arena_fill_least(const struct arena_fill *f)
{
    bool known;
    uint64_t files = sort_inputs_size(f->opt.inputs, &known);
    return files > f->opt.size_hint ? files : f->opt.size_hint;
}

static void settle_keys(struct found *found)
{
    if (found->place)
        memcpy(found->place, found->keys, found->walk.n * sizeof *found->keys);
    found->place = NULL;
}

/* In the inflate task: find the block's records while they are in the cache. */
static void find_records(void *arg, const struct bgzf_source_block *block)
{
    struct arena_fill *f = arg;
    struct found *found = &f->found[block->slot];
    uint64_t start = (uint64_t)(block->data - f->opt.memory->arena->base);
    enum stage before = stats_enter(f->opt.stats, STAGE_FIND);
    settle_keys(found);
    found->walk = bam_arena_guess(f->opt.memory->arena, start, start + block->size, found->keys);
    stats_leave(f->opt.stats, before, block->size);
}

/* Takes the oldest block back into the arena. 1: done; 0: none ready; -1: stop. */
static int take_block(struct arena_fill *f, int wait)
{
    struct bgzf_source_block block;
    int taken = bgzf_source_take(f->in->source, wait, &block);
    if (taken <= 0)
        return taken;
    struct found *found = &f->found[block.slot];
    struct bam_origin origin = {f->in->name, block.file_offset};
    f->last_block = block.file_offset;
    uint64_t n_before = f->opt.memory->arena->n_records;
    uint64_t end = (uint64_t)(block.data - f->opt.memory->arena->base) + block.size;
    if (bam_arena_accept(f->opt.memory->arena, &found->walk, found->keys, end, &found->place, f->opt.latch, &origin) < 0)
        return -1;
    stats_records(f->opt.stats, f->opt.memory->arena->n_records - n_before);
    return arena_pair_sort(f->opt.memory) < 0 ? -1 : 1;
}

static int take_ready(struct arena_fill *f)
{
    int taken;
    while ((taken = take_block(f, 0)) > 0)
        ;
    return taken;
}

/* Then no task uses a slot, and all keys can be put in their places. */
static int take_all(struct arena_fill *f)
{
    int taken;
    while ((taken = take_block(f, 1)) > 0)
        ;
    for (uint32_t i = 0; i < f->opt.n_slots && taken == 0; i++)
        settle_keys(&f->found[i]);
    return taken;
}

/* Sees to it that the next size bytes have a place, taking back all blocks if need be. */
static int make_room(struct arena_fill *f, size_t size)
{
    if (arena_pair_hurry(f->opt.memory) < 0)
        return -1;
    if (bam_arena_room(f->opt.memory->arena) < size && take_all(f) < 0)
        return -1;
    return bam_arena_room(f->opt.memory->arena) < size ? arena_pair_make_room(f->opt.memory, size) : 0;
}

static void watch_memory(struct arena_fill *f)
{
    uint64_t taken = arena_pair_taken(f->opt.memory);
    if (memory_watch_due(&f->watch, taken))
        memory_watch_look(&f->watch, taken, arena_pair_expected(f->opt.memory));
}

/* Gives the next block a place in the arena, taking back others if need be. */
static int place_block(struct arena_fill *f, uint32_t size)
{
    if ((bgzf_source_ring_full(f->in->source) && take_block(f, 1) < 0) || make_room(f, size) < 0)
        return -1;
    bgzf_source_hand_out(f->in->source, bam_arena_take(f->opt.memory->arena, size));
    progress_tick(f->opt.progress);
    watch_memory(f);
    return take_ready(f);
}

/* The bytes behind the header, in the header's last block, come first. */
static int place_rest_of_header(struct arena_fill *f)
{
    size_t rest = f->in->header.rest_size;
    if (make_room(f, rest) < 0)
        return -1;
    if (rest)
        memcpy(bam_arena_take(f->opt.memory->arena, rest), f->in->header.rest, rest);
    return 0;
}

/* Inflates the first blocks alone and lets the order look at their records. */
static int place_sample(struct arena_fill *f, struct sort_rule *rule)
{
    const struct bam_record *sample[SAMPLE_RECORDS];
    struct bam_arena *a = f->opt.memory->arena;
    uint32_t size;
    size_t n = 0;
    int found = 1;
    while (a->bottom < SAMPLE_BYTES && (found = bgzf_source_peek(f->in->source, &size)) > 0)
        if (bgzf_source_inflate(f->in->source, bam_arena_take(a, size)) < 0)
            return -1;
    for (size_t at = 0; n < SAMPLE_RECORDS && !bam_record_check(a->base + at, a->bottom - at, a->n_ref).fault; n++) {
        sample[n] = (const struct bam_record *)(a->base + at);
        at += bam_record_size(sample[n]);
    }
    sort_rule_learn(rule, sample, n);
    return found < 0 ? -1 : 0;
}

static int accept_end(struct arena_fill *f)
{
    struct bam_arena *a = f->opt.memory->arena;
    struct bam_walk none = {.start = a->bottom, .end = a->bottom};
    struct bam_origin origin = {f->in->name, f->last_block};
    if (bam_arena_accept(a, &none, NULL, a->bottom, NULL, f->opt.latch, &origin) < 0)
        return -1;
    if (a->walked != a->bottom)
        return latch_fail(f->opt.latch, "%s: the file ends inside record %llu, which begins at byte %llu of the "
                          "uncompressed data, in or before the block at file offset %llu: it is truncated. "
                          "Nothing was written", f->in->name,
                          (unsigned long long)(a->n_records - a->n_before) + 1,
                          (unsigned long long)(a->origin + a->walked), (unsigned long long)f->last_block);
    bgzf_source_warn_of_end(f->in->source);
    return 0;
}

static int read_one(struct arena_fill *f, struct sort_rule *rule)
{
    struct bam_arena *a = f->opt.memory->arena;
    uint32_t size;
    int found;
    a->origin = f->in->header.size - a->bottom;
    a->n_before = a->n_records;
    f->last_block = 0;
    bgzf_source_on_inflated(f->in->source, find_records, f);
    if (place_rest_of_header(f) < 0 || (a->rule && f->in == f->opt.inputs->each && place_sample(f, rule) < 0))
        return -1;
    enum stage before = stats_enter(f->opt.stats, STAGE_DEAL);
    while ((found = bgzf_source_peek(f->in->source, &size)) > 0)
        if (place_block(f, size) < 0)
            return -1;
    int failed = found < 0 || take_all(f) < 0;
    stats_leave(f->opt.stats, before, 0);
    return failed ? -1 : accept_end(f);
}

int arena_fill_read(struct arena_fill *f, struct sort_rule *rule)
{
    assert_slots(f);
    memory_watch_start(&f->watch, machine_memory(), 2 * f->opt.memory->opt.plan.arena_size, arena_fill_least(f));
    for (size_t i = 0; i < f->opt.inputs->n; i++) {
        f->in = &f->opt.inputs->each[i];
        if (read_one(f, rule) < 0)
            return -1;
    }
    return arena_pair_finish(f->opt.memory);
}
