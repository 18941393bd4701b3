/* SPDX-License-Identifier: MIT */
/* The places that reads cover, as blocks that are in order and apart. A place is a number that grows over all
 * references:
 *
 *   reference << 32 | POS of SAM        POS counts from 1, and is below 2^32; 0: none
 *
 * Reads come in order, so a new read changes only the last blocks. */
#ifndef COVERED_H
#define COVERED_H

#include <stddef.h>
#include <stdint.h>
#include "base/byte_buffer.h"

struct covered_block {
    int64_t begin, end;          /* places from begin to end - 1 */
};

struct covered {
    struct byte_buffer blocks;   /* n of them: see covered_blocks() */
    size_t n;
    struct byte_buffer tail;     /* work space of covered_add() */
};

static inline int64_t covered_place(int32_t ref, int64_t pos)
{
    return ((int64_t)ref << 32) + (pos < 0 ? 0 : pos);
}

static inline int32_t covered_reference(int64_t place)
{
    return (int32_t)(place >> 32);
}

static inline struct covered_block *covered_blocks(const struct covered *covered)
{
    return (struct covered_block *)(void *)covered->blocks.p;
}

/* A zero-initialised struct is empty. */
void covered_free(struct covered *covered);

/* Adds n blocks, which are in order and apart. It takes time for those blocks that end at or after the first of them.
 * Returns -1 if out of memory; then nothing is changed. */
int covered_add(struct covered *covered, const struct covered_block *blocks, size_t n);

/* Removes the first n blocks. */
void covered_remove(struct covered *covered, size_t n);

#endif
