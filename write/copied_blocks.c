/* SPDX-License-Identifier: MIT */
#include "codec/kept_block.h"
#include "write/copied_blocks.h"

/* The first block of a series is copied only if the BEFORE blocks before it could have been copied, too. */
enum { BEFORE = 3 };

static bool copies(const struct copied_blocks *b)
{
    return b->block && b->n_before == BEFORE;
}

/* Returns whether the record follows the one before it in its input, too, and both are unchanged. */
static bool follows_in_input(const struct copied_blocks *b, const struct record_ref *r)
{
    return b->sound && r->input == b->input && r->size <= BGZF_FILL && !kept_block_is_changed(r->data);
}

/* Adds the record to the block. */
static void take(struct copied_blocks *b, const struct record_ref *r, struct copy_step *step)
{
    uint32_t left = b->block->inflated_size - b->size;
    step->copies = copies(b);
    step->part = r->size < left ? r->size : left;
    b->size += step->part;
    if (r->size < left)
        return;
    step->whole = b->block;
    b->rest = r->size - left;
    b->joins = true;
    b->block = NULL;
}

/* Begins a block if the record begins one and directly follows the record before it. */
static bool begin(struct copied_blocks *b, const struct record_ref *r, struct copy_step *step)
{
    const struct kept_block *block = kept_block_of(r->data);
    bool joins = b->joins;
    b->joins = false;
    if (!block || r->size > BGZF_FILL || (block->lead > 0 && (!follows_in_input(b, r) || block->lead >= b->last_size)))
        return false;
    bool was_copied = joins && b->n_before == BEFORE;
    if (!joins || block->lead != b->rest)
        b->n_before = 0;
    else
        b->n_before += !was_copied;
    b->block = block;
    b->size = block->lead;
    step->begins = copies(b) && !was_copied;
    step->lead = block->lead;
    return true;
}

struct copy_step copied_blocks_next(struct copied_blocks *b, const struct record_ref *r)
{
    struct copy_step step = {.whole = NULL};
    bool is_in = b->block && follows_in_input(b, r);
    if (b->block && !is_in) {
        step.breaks = copies(b);
        b->block = NULL;
    }
    if (is_in || begin(b, r, &step))
        take(b, r, &step);
    b->sound = r->size <= BGZF_FILL && !kept_block_is_changed(r->data);
    b->input = r->input;
    b->last_size = r->size;
    return step;
}
