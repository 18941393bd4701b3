/* SPDX-License-Identifier: MIT */
/* A BGZF block that is kept as it was read, before the first record that begins in it. It may be written unchanged if
 * all its records are. The address of a record says what is known of it, so code that passes records on needs no
 * knowledge of kept blocks.
 *
 *   ...record | pad | compressed bytes | struct kept_block | record | pad | record | ...
 *                                                          ^ a multiple of 8
 *
 * A record at a multiple of 8 has a block before it. A record 4 bytes after such a multiple was changed, so no block
 * has its bytes. All other records lie elsewhere: they are as in the input, and no block is kept for them. */
#ifndef KEPT_BLOCK_H
#define KEPT_BLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "base/byte_buffer.h"
#include "codec/bgzf_block.h"

struct kept_block {
    uint32_t size;               /* compressed */
    uint32_t inflated_size;
    uint32_t lead;               /* the block's bytes before the record: the end of the record before */
};

/* A block with less data is not kept: copies of small blocks would be small blocks. */
enum { KEPT_BLOCK_LEAST = 32 << 10 };

enum { KEPT_BLOCK_PLACES = 8, KEPT_BLOCK_CHANGED = 4 };

/* Returns the block before the record, or NULL if there is none. */
static inline const struct kept_block *kept_block_of(const uint8_t *record)
{
    return (uintptr_t)record % KEPT_BLOCK_PLACES == 0 ? (const struct kept_block *)(const void *)record - 1 : NULL;
}

/* Returns whether the record's bytes differ from those in its input. */
static inline bool kept_block_is_changed(const uint8_t *record)
{
    return (uintptr_t)record % KEPT_BLOCK_PLACES == KEPT_BLOCK_CHANGED;
}

static inline const uint8_t *kept_block_bytes(const struct kept_block *block)
{
    return (const uint8_t *)block - block->size;
}

/* Returns the bytes between n and the next place for a record that is as in the input and has no kept block. The
 * buffers of records begin at multiples of 8. */
static inline size_t kept_block_pad(size_t n)
{
    return n % KEPT_BLOCK_CHANGED == 0;
}

static inline size_t kept_block_pad_changed(size_t n)
{
    return (KEPT_BLOCK_CHANGED - n) % KEPT_BLOCK_PLACES;
}

/* Appends the block with its compressed bytes. The record must be appended next. Returns -1 if out of memory. */
static inline int kept_block_append(struct byte_buffer *to, const struct kept_block *block, const uint8_t *bytes)
{
    size_t n = to->n + block->size + sizeof *block, pad = (0 - n) % KEPT_BLOCK_PLACES;
    if (byte_buffer_reserve(to, n + pad) < 0)
        return -1;
    memcpy(to->p + to->n + pad, bytes, block->size);
    memcpy(to->p + n + pad - sizeof *block, block, sizeof *block);
    to->n = n + pad;
    return 0;
}

#endif
