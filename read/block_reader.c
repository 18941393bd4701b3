/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "bam/record_fault.h"
#include "bgzf_omp.h"
#include "read/block_reader.h"
#include "read/fixed_records.h"
#include "read/input_part.h"
#include "read/record_slice.h"
#include "codec/bgzf_block.h"
#include "base/latch.h"
#include "order/sort_key.h"
#include "base/stats.h"

enum {
    /* What the shape of names is learned from: one block's worth. */
    SAMPLE_BYTES = BGZF_FILL,
};

/* What an inflate task found in its block, by ring slot. Written by the task, read by the main thread once it has taken
 * the block back. The keys stay here until the slot's next task copies them: the main thread only counts them. */
struct found {
    struct bam_walk walk;
    struct bam_key *place;       /* where the keys belong, NULL: they are there; main thread, then the next task. Of
                                  * known records: the same task */
    struct bam_key keys[BAM_ARENA_BLOCK_KEYS];
};

int block_reader_open(struct block_reader *r, const struct block_reader_options *options)
{
    *r = (struct block_reader){.opt = *options};
    if ((r->found = calloc(options->n_slots, sizeof *r->found)))
        return 0;
    return latch_fail(options->latch, "out of memory");
}

void block_reader_close(struct block_reader *r)
{
    free(r->found);
    r->found = NULL;
}

void block_reader_set_arena(struct block_reader *r, struct bam_arena *arena)
{
    r->arena = arena;
}

size_t block_reader_slot_memory(void)
{
    return sizeof(struct found);
}

/* Bytes of records that were listed, of this input. */
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

/* A block of the file never takes more bytes than the records in it do. So these are at least as large as the files. */
uint64_t block_reader_least(const struct block_reader *r)
{
    uint64_t files = r->opt.inputs->size;
    return files > r->opt.size_hint ? files : r->opt.size_hint;
}

static void settle_keys(struct found *found)
{
    if (found->place)
        memcpy(found->place, found->keys, found->walk.n * sizeof *found->keys);
    found->place = NULL;
}

/* In the inflate task: finds the block's records while they are in the cache. */
static void find_records(void *reader, const struct bgzf_source_block *block)
{
    struct block_reader *r = reader;
    struct found *found = &r->found[block->slot];
    uint64_t start = (uint64_t)(block->data - r->arena->base);
    enum stage before = stats_enter(r->opt.stats, STAGE_FIND);
    if (block->slice) {
        const struct bam_key *known = block->slice->keys + block->first;
        found->walk = bam_arena_take_known(r->arena, start, known, block->n_records, found->place);
    } else {
        settle_keys(found);
        found->walk = bam_arena_guess(r->arena, start, start + block->size, found->keys);
    }
    stats_leave(r->opt.stats, before, block->size);
}

/* Records that come with their keys make large blocks, but what is left of a full arena shall be little. */
static size_t most_known(const struct bam_arena *arena)
{
    enum { SHARE = 32, MOST = 1 << 20 };
    size_t share = arena->size / SHARE;
    return share < BGZF_FILL ? BGZF_FILL : share < MOST ? share : MOST;
}

/* Each slot of the source has its own list of found records, so there must be as many lists as slots. */
void block_reader_begin(struct block_reader *r, struct input *in)
{
    assert(bgzf_source_slots(in->source) == r->opt.n_slots);
    r->in = in;
    r->known = in->fixed && !r->arena->rule;
    if (r->known)
        chunk_reader_show_records(fixed_records_chunks(in->fixed), most_known(r->arena));
    r->arena->origin = in->header.size - r->arena->bottom;
    r->arena->n_before = r->arena->n_records;
    r->last_block = 0;
    bgzf_source_on_inflated(in->source, find_records, r);
}

/* Inflates the first blocks alone and lets the order look at their records, or at those that the part brings. */
static int place_sample(struct block_reader *r, struct sort_rule *rule)
{
    const struct input_part *part = r->in->part;
    struct bam_arena *a = r->arena;
    uint32_t size;
    int found = 1;
    if (part && part->sample) {
        sort_rule_learn_of(rule, part->sample, part->sample_size, a->n_ref);
        return 0;
    }
    while (a->bottom < SAMPLE_BYTES && (found = bgzf_source_peek(r->in->source, &size)) > 0)
        if (bgzf_source_inflate(r->in->source, bam_arena_take(a, size)) < 0)
            return -1;
    sort_rule_learn_of(rule, a->base, a->bottom, a->n_ref);
    return found < 0 ? -1 : 0;
}

int block_reader_start(struct block_reader *r, struct sort_rule *rule)
{
    size_t rest = r->in->header.rest_size;
    if (rest)
        memcpy(bam_arena_take(r->arena, rest), r->in->header.rest, rest);
    return r->arena->rule && r->in == r->opt.inputs->each ? place_sample(r, rule) : 0;
}

void block_reader_hand_out(struct block_reader *r, uint32_t size)
{
    struct bgzf_source *source = r->in->source;
    uint8_t *place = bam_arena_take(r->arena, size);
    if (r->known)
        r->found[bgzf_source_next_slot(source)].place = bam_arena_list(r->arena, bgzf_source_records(source));
    bgzf_source_hand_out(source, place, NULL);
}

uint32_t block_reader_behind(const struct block_reader *r)
{
    return r->known ? bgzf_source_out(r->in->source) : r->opt.n_slots;
}

static int accept(struct block_reader *r, const struct bgzf_source_block *block, struct found *found)
{
    struct bam_origin origin = {r->in->name, block->file_offset};
    uint64_t end = (uint64_t)(block->data - r->arena->base) + block->size;
    if (!r->known)
        return bam_arena_accept(r->arena, &found->walk, found->keys, end, &found->place, r->opt.latch, &origin);
    found->place = NULL;
    r->arena->checksum += found->walk.checksum;
    r->arena->beyond |= found->walk.beyond;
    return 0;
}

/* Takes the oldest block back. If no block is out, no task uses a slot: all keys can be put in their places. */
static int take(struct block_reader *r, bool wait, struct bgzf_source_block *block)
{
    int taken = bgzf_source_take(r->in->source, wait, block);
    for (uint32_t i = 0; taken == 0 && wait && i < r->opt.n_slots; i++)
        settle_keys(&r->found[i]);
    return taken;
}

/* The name of the next record lacks its NUL: from there on records go through a buffer, in which it is added. */
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
    bgzf_source_on_inflated(r->in->source, find_records, r);
    return 1;
}

int block_reader_take(struct block_reader *r, bool wait)
{
    struct bgzf_source_block block;
    int taken = take(r, wait, &block);
    if (taken <= 0)
        return taken;
    struct found *found = &r->found[block.slot];
    __builtin_prefetch(&r->found[(block.slot + 1) % r->opt.n_slots].walk);
    uint64_t n_before = r->arena->n_records;
    r->last_block = block.file_offset;
    int status = accept(r, &block, found);
    if (status < 0)
        return -1;
    if (!r->in->part || !r->in->part->collated)
        stats_records(r->opt.stats, r->known ? found->walk.n : r->arena->n_records - n_before);
    return status ? pass_rest(r) : 1;
}

static int record_is_cut(const struct block_reader *r)
{
    const struct bam_arena *a = r->arena;
    struct record_place at = {r->in->name, a->n_records - a->n_before + 1, a->origin + a->walked, r->last_block};
    return record_fault_tell_cut(r->opt.latch, &at, !r->in->part || r->in->part->is_last);
}

int block_reader_end(struct block_reader *r)
{
    struct bam_arena *a = r->arena;
    struct bam_walk none = {.start = a->bottom, .end = a->bottom};
    struct bam_origin origin = {r->in->name, r->last_block};
    int status = bam_arena_accept(a, &none, NULL, a->bottom, NULL, r->opt.latch, &origin);
    if (status)
        return status < 0 ? -1 : pass_rest(r);
    if (a->walked != a->bottom)
        return record_is_cut(r);
    bgzf_source_warn_of_end(r->in->source);
    return 0;
}
