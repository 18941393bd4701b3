/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdlib.h>
#include <sys/types.h>
#include "bam/record_fault.h"
#include "bam_arena.h"
#include "base/latch.h"
#include "base/stats.h"
#include "bgzf_omp.h"
#include "codec/bgzf_block.h"
#include "read/record_pass.h"
#include "read/input.h"

/* What was found in a block: written by its task, then, once the block is taken back, by the main thread. */
struct record_pass_slot {
    struct bam_walk walk;
    uint64_t seen;
    struct bam_key keys[BAM_ARENA_BLOCK_KEYS];
};

int record_pass_open(struct record_pass *p, const struct record_pass_options *options)
{
    *p = (struct record_pass){.opt = *options, .n_ref = sam_hdr_nref(options->input->header.sam),
                              .n_slots = bgzf_source_slots(options->input->source)};
    p->blocks = malloc((size_t)p->n_slots * BGZF_MAX_BLOCK);
    p->slots = calloc((size_t)p->n_slots + 1, sizeof *p->slots);
    return p->blocks && p->slots ? 0 : latch_fail(options->latch, "out of memory");
}

void record_pass_close(struct record_pass *p)
{
    free(p->blocks);
    free(p->slots);
    free(p->cut.p);
}

/* ----------------------------------------------------------------- records */

/* The bytes at base as a walk sees them. */
static struct bam_arena view_of(const struct record_pass *p, uint8_t *base)
{
    return (struct bam_arena){.base = base, .n_ref = p->n_ref, .rule = p->opt.rule};
}

static struct record_found found_in(const struct record_pass *p, const struct record_pass_slot *slot,
                                    const uint8_t *base)
{
    return (struct record_found){base, slot->keys, slot->walk.n, slot->walk.checksum, slot->seen,
                                 (uint32_t)(slot - p->slots)};
}

static void look(const struct record_pass *p, struct record_pass_slot *slot, const uint8_t *base)
{
    struct record_found found = found_in(p, slot, base);
    slot->seen = p->opt.look(p->opt.arg, &found);
}

/* In the inflate task. Records that must be mended wait for the main thread: where the guess is wrong, no byte of the
 * block may have changed. */
static void find_records(void *pass, const struct bgzf_source_block *block)
{
    struct record_pass *p = pass;
    struct record_pass_slot *slot = &p->slots[block->slot];
    struct bam_arena view = view_of(p, block->data);
    enum stage before = stats_enter(p->opt.stats, STAGE_FIND);
    slot->walk = bam_arena_guess(&view, 0, block->size, slot->keys);
    if (!slot->walk.n_fix)
        look(p, slot, block->data);
    stats_leave(p->opt.stats, before, block->size);
}

static struct record_place next_place(const struct record_pass *p)
{
    return (struct record_place){p->opt.input->name, p->n + 1, p->bytes, p->block};
}

/* Takes the records that begin at `start`, which is where the record before ended. The slot's walk stands if it began
 * there. */
static int take_records(struct record_pass *p, struct record_pass_slot *slot, uint8_t *base, size_t start, size_t end)
{
    struct bam_arena view = view_of(p, base);
    struct bam_walk *walk = &slot->walk;
    bool is_right = walk->start == start;
    if (!is_right)
        *walk = bam_arena_walk(&view, start, end, slot->keys);
    if (walk->n_fix && bam_arena_fix(&view, slot->keys, walk->n, &walk->checksum) < 0)
        return latch_fail(p->opt.latch, "out of memory");
    if (!is_right || walk->n_fix)
        look(p, slot, base);
    struct record_found found = found_in(p, slot, base);
    if (found.n > 0 && p->opt.next(p->opt.arg, &found) < 0)
        return -1;
    p->n += found.n;
    p->bytes += walk->end - walk->start;
    struct record_place at = next_place(p);
    return walk->fault == BAM_OK || walk->fault == BAM_CUT ? 0
         : record_fault_tell(p->opt.latch, &at, walk->fault, base + walk->end);
}

/* ------------------------------------------------------------------- bytes */

static int keep(struct record_pass *p, const uint8_t *bytes, size_t n)
{
    if (byte_buffer_append(&p->cut, bytes, n) < 0)
        return latch_fail(p->opt.latch, "out of memory for a record of %zu bytes", p->cut.n + n);
    return 0;
}

/* The slot that no task has. Nothing is walked there. */
static struct record_pass_slot *own_slot(struct record_pass *p)
{
    struct record_pass_slot *slot = &p->slots[p->n_slots];
    slot->walk.start = UINT64_MAX;
    return slot;
}

/* Bytes that the record begun in `cut` still lacks; its fixed fields come first. */
static size_t lacking(const struct record_pass *p)
{
    size_t whole = p->cut.n < BAM_FIXED ? BAM_FIXED : bam_record_size((const struct bam_record *)p->cut.p);
    return whole > p->cut.n ? whole - p->cut.n : 0;
}

/* Goes on with the record in `cut`. Returns how many bytes of the block it used, or -1. */
static ssize_t complete(struct record_pass *p, const uint8_t *block, size_t size)
{
    struct record_pass_slot *slot = own_slot(p);
    size_t used = 0;
    while (lacking(p) > 0 && used < size) {
        size_t more = lacking(p) < size - used ? lacking(p) : size - used;
        if (keep(p, block + used, more) < 0)
            return -1;
        used += more;
    }
    if (take_records(p, slot, p->cut.p, 0, p->cut.n) < 0)
        return -1;
    if (slot->walk.n > 0)
        p->cut.n = 0;
    return (ssize_t)used;
}

/* The next bytes of the stream of records. */
static int take_bytes(struct record_pass *p, struct record_pass_slot *slot, uint8_t *data, size_t size)
{
    ssize_t used = p->cut.n ? complete(p, data, size) : 0;
    if (used < 0 || (size_t)used == size)
        return used < 0 ? -1 : 0;
    return take_records(p, slot, data, (size_t)used, size) < 0 ? -1
         : keep(p, data + slot->walk.end, size - slot->walk.end);
}

/* ------------------------------------------------------------------ blocks */

static int take_block(struct record_pass *p, int wait)
{
    struct bgzf_source_block block;
    int taken = bgzf_source_take(p->opt.input->source, wait, &block);
    p->block = taken > 0 ? block.file_offset : p->block;
    return taken > 0 && take_bytes(p, &p->slots[block.slot], block.data, block.size) < 0 ? -1 : taken;
}

static int take_blocks(struct record_pass *p, int wait)
{
    int taken;
    while ((taken = take_block(p, wait)) > 0)
        ;
    return taken;
}

static int deal_blocks(struct record_pass *p)
{
    struct bgzf_source *source = p->opt.input->source;
    uint32_t size;
    int found;
    while ((found = bgzf_source_peek(source, &size)) > 0) {
        if (bgzf_source_ring_full(source) && take_block(p, 1) < 0)
            return -1;
        bgzf_source_hand_out(source, p->blocks + p->n_blocks++ % p->n_slots * BGZF_MAX_BLOCK, NULL);
        if (take_blocks(p, 0) < 0)
            return -1;
    }
    return found < 0 ? -1 : take_blocks(p, 1);
}

int record_pass_run(struct record_pass *p)
{
    struct input *in = p->opt.input;
    assert(in->header.rest_size <= BGZF_MAX_BLOCK);
    p->bytes = in->header.size;
    p->block = bgzf_source_offset(in->source);
    bgzf_source_on_inflated(in->source, find_records, p);
    enum stage before = stats_enter(p->opt.stats, STAGE_DEAL);
    int result = take_bytes(p, own_slot(p), in->header.rest, in->header.rest_size) < 0 ? -1 : deal_blocks(p);
    stats_leave(p->opt.stats, before, 0);
    if (result < 0 || latch_tripped(p->opt.latch))
        return -1;
    struct record_place last = next_place(p);
    if (p->cut.n)
        return record_fault_tell_cut(p->opt.latch, &last, true);
    bgzf_source_warn_of_end(in->source);
    return 0;
}
