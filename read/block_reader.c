/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "bam/record_fault.h"
#include "bgzf_omp.h"
#include "read/block_reader.h"
#include "read/input_format.h"
#include "codec/bgzf_block.h"
#include "base/engine.h"
#include "base/latch.h"
#include "order/sort_key.h"
#include "base/clocks.h"

enum {
    /* Bytes from which the shape of names is learned: as many as one block holds. */
    SAMPLE_BYTES = BGZF_FILL,
};

/* The result of an inflate task for its block, by ring slot. The task writes it, and the main thread reads it after it
 * has taken the block back. The keys stay here until the slot's next task copies them; the main thread only counts
 * them. */
struct block_found {
    struct bam_walk walk;
    struct bam_key *place;       /* where the keys belong; NULL: they are already there. Set by the main thread, then
                                  * read by the slot's next task */
    struct bam_key keys[BAM_ARENA_BLOCK_KEYS];
};

int block_reader_open(struct block_reader *r, const struct block_reader_options *options)
{
    struct slice_copies_options copies = {options->n_slots, options->n_lent, options->engine};
    *r = (struct block_reader){.opt = *options};
    r->found = calloc(options->n_slots, sizeof *r->found);
    if (slice_copies_open(&r->copies, &copies) == 0 && r->found)
        return 0;
    return latch_fail(options->engine->latch, "out of memory");
}

void block_reader_close(struct block_reader *r)
{
    slice_copies_close(&r->copies);
    free(r->found);
    r->found = NULL;
}

void block_reader_set_arena(struct block_reader *r, struct bam_arena *arena)
{
    r->arena = r->copies.arena = arena;
}

size_t block_reader_memory(uint32_t n_slots)
{
    return n_slots * (sizeof(struct block_found) + slice_copies_slot_memory());
}

/* Returns the bytes of this input's records that were listed. */
static double so_far(const struct block_reader *r)
{
    return (double)(r->arena->origin + r->arena->walked);
}

double block_reader_expected(const struct block_reader *r)
{
    const struct inputs *in = r->opt.inputs;
    if (r->opt.size_hint)
        return (double)r->opt.size_hint;
    return in->size_known && r->last_block ? (double)in->size / (double)r->last_block * so_far(r) : 0;
}

uint64_t block_reader_to_come(const struct block_reader *r)
{
    double all = block_reader_expected(r), read = so_far(r);
    uint64_t records = r->arena->n_records - r->arena->n_before;
    if (all <= 0)
        return UINT64_MAX;
    return all > read ? (uint64_t)((all - read) / read * (double)records) : 0;
}

/* A block of the file never takes more bytes than the records in it. So the records take at least as many bytes as the
 * files. */
uint64_t block_reader_least(const struct block_reader *r)
{
    uint64_t files = r->opt.inputs->size;
    return files > r->opt.size_hint ? files : r->opt.size_hint;
}

static void settle_keys(struct block_found *found)
{
    if (found->place)
        memcpy(found->place, found->keys, found->walk.n * sizeof *found->keys);
    found->place = NULL;
}

/* ------------------------------------------------------------------- tasks */

/* Finds the block's records while they are in the cache. Runs in the inflate task. */
static void find_records(void *reader, const struct bgzf_source_block *block)
{
    struct block_reader *r = reader;
    struct block_found *found = &r->found[block->slot];
    uint64_t start = (uint64_t)(block->data - r->arena->base);
    enum stage before = clocks_enter(r->opt.engine->clocks, STAGE_FIND);
    settle_keys(found);
    found->walk = bam_arena_guess(r->arena, start, start + block->size, found->keys);
    clocks_leave(r->opt.engine->clocks, before, block->size);
}

/* ------------------------------------------------------------- main thread */

/* Returns whether the input's records come in slices. */
static bool is_stream(const struct block_reader *r)
{
    return r->in->stream.producer;
}

/* Each slot of the source has its own list of found records, so there must be as many lists as slots. */
int block_reader_begin(struct block_reader *r, struct input *in)
{
    r->in = in;
    r->arena->origin = in->header.size - r->arena->bottom;
    r->arena->n_before = r->arena->n_records;
    r->last_block = 0;
    if (is_stream(r))
        return slice_copies_begin(&r->copies, in, r->arena);
    assert(bgzf_source_slots(in->source) == r->opt.n_slots);
    bgzf_source_on_inflated(in->source, find_records, r);
    return 0;
}

int block_reader_peek(struct block_reader *r, size_t *size)
{
    r->changed = false;
    if (is_stream(r))
        return slice_copies_peek(&r->copies, size);
    uint32_t inflated = 0;
    int found = bgzf_source_peek(r->in->source, &inflated);
    *size = inflated;
    return found;
}

/* Lets the rule learn from the first records of the stream. */
static int learn_of_stream(struct block_reader *r, struct sort_rule *rule)
{
    size_t size;
    if (slice_copies_peek(&r->copies, &size) < 0)
        return -1;
    slice_copies_learn(&r->copies, rule, SAMPLE_BYTES);
    return 0;
}

/* Inflates the first blocks alone, and lets the order look at their records. */
static int place_sample(struct block_reader *r, struct sort_rule *rule)
{
    struct bam_arena *a = r->arena;
    uint32_t size;
    int found = 1;
    if (is_stream(r))
        return learn_of_stream(r, rule);
    while (a->bottom < SAMPLE_BYTES && (found = bgzf_source_peek(r->in->source, &size)) > 0)
        if (bgzf_source_inflate(r->in->source, bam_arena_take(a, size)) < 0)
            return -1;
    sort_rule_learn_of(rule, a->base, a->bottom, a->n_ref);
    return found < 0 ? -1 : 0;
}

/* Lists the records in the arena that are not listed yet, if they are complete. */
static int list_rest(struct block_reader *r)
{
    struct bam_arena *a = r->arena;
    struct bam_walk none = {.start = a->bottom, .end = a->bottom};
    struct bam_origin origin = {r->in->name, r->last_block};
    return bam_arena_accept(a, &none, NULL, a->bottom, NULL, r->opt.engine->latch, &origin);
}

/* Lists the first records of a stream, which a rank of MPI has taken from it before the sort. */
static int list_first(struct block_reader *r)
{
    struct tally before = bam_arena_tally(r->arena);
    if (list_rest(r) < 0)
        return -1;
    struct tally now = bam_arena_tally(r->arena);
    tally_add(&r->copies.taken, (struct tally){.n = now.n - before.n, .checksum = now.checksum - before.checksum});
    return 0;
}

int block_reader_start(struct block_reader *r, struct sort_rule *rule)
{
    size_t rest = r->in->header.rest_size;
    if (rest)
        memcpy(bam_arena_take(r->arena, rest), r->in->header.rest, rest);
    if (rule && r->arena->rule && r->in == r->opt.inputs->each && place_sample(r, rule) < 0)
        return -1;
    return rest && is_stream(r) ? list_first(r) : 0;
}

bool block_reader_full(const struct block_reader *r)
{
    return is_stream(r) ? task_ring_full(&r->copies.ring) : bgzf_source_ring_full(r->in->source);
}

void block_reader_hand_out(struct block_reader *r, size_t size)
{
    if (r->changed)
        return;
    uint8_t *place = bam_arena_take(r->arena, size);
    if (is_stream(r))
        slice_copies_hand_out(&r->copies, (uint64_t)(place - r->arena->base));
    else
        bgzf_source_hand_out(r->in->source, place, NULL);
}

uint32_t block_reader_behind(const struct block_reader *r)
{
    return is_stream(r) ? (uint32_t)(task_ring_head(&r->copies.ring) - r->copies.ring.tail) : r->opt.n_slots;
}

/* Takes the oldest block back. If no block is out, no task uses a slot, so all keys can be put in their places. */
static int take(struct block_reader *r, bool wait, struct bgzf_source_block *block)
{
    int taken = bgzf_source_take(r->in->source, wait, block);
    for (uint32_t i = 0; taken == 0 && wait && i < r->opt.n_slots; i++)
        settle_keys(&r->found[i]);
    return taken;
}

/* The name of the next record lacks its NUL. From there on, records go through a buffer in which the NUL is added. */
static int pass_rest(struct block_reader *r)
{
    struct bam_arena *a = r->arena;
    struct bgzf_source_block block;
    int taken;
    while ((taken = take(r, true, &block)) > 0)
        ;
    if (taken < 0 || bgzf_source_put_back(r->in->source, a->base + a->walked, a->bottom - a->walked) < 0)
        return -1;
    a->bottom = a->walked;
    if (input_pass_rest(r->in, a->n_records - a->n_before, a->origin + a->walked) < 0)
        return -1;
    r->changed = true;
    return slice_copies_begin(&r->copies, r->in, a) < 0 ? -1 : 1;
}

static int take_block(struct block_reader *r, bool wait)
{
    struct bgzf_source_block block;
    int taken = take(r, wait, &block);
    if (taken <= 0)
        return taken;
    struct block_found *found = &r->found[block.slot];
    struct bam_origin origin = {r->in->name, block.file_offset};
    uint64_t n_before = r->arena->n_records, end = (uint64_t)(block.data - r->arena->base) + block.size;
    __builtin_prefetch(&r->found[(block.slot + 1) % r->opt.n_slots].walk);
    r->last_block = block.file_offset;
    int status = bam_arena_accept(r->arena, &found->walk, found->keys, end, &found->place,
                                  r->opt.engine->latch, &origin);
    if (status < 0)
        return -1;
    clocks_records(r->opt.engine->clocks, r->arena->n_records - n_before);
    return status ? pass_rest(r) : 1;
}

int block_reader_take(struct block_reader *r, bool wait)
{
    if (!is_stream(r))
        return take_block(r, wait);
    int taken = slice_copies_take(&r->copies, wait);
    if (taken != 0)
        r->last_block = r->copies.offset;
    return taken;
}

static int record_is_cut(const struct block_reader *r)
{
    const struct bam_arena *a = r->arena;
    struct record_place at = {r->in->name, a->n_records - a->n_before + 1, a->origin + a->walked, r->last_block};
    return record_fault_report_cut(r->opt.engine->latch, &at, !input_goes_on(r->in));
}

int block_reader_end(struct block_reader *r)
{
    struct bam_arena *a = r->arena;
    if (r->changed)
        return 1;
    int status = list_rest(r);
    if (status)
        return status < 0 ? -1 : pass_rest(r);
    if (a->walked != a->bottom)
        return record_is_cut(r);
    if (is_stream(r))
        return slice_copies_end(&r->copies);
    bgzf_source_warn_of_end(r->in->source);
    return 0;
}
