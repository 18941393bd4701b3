/* SPDX-License-Identifier: MIT */
/* Keys inside keys. A key is a number below some range; what it does not yet
 * decide leaves room, a number of consecutive keys, into which the key of the
 * next criterion is put. Sub-keys are left-aligned: their first bits matter most,
 * so cutting the last ones keeps the order and only decides less. */
#ifndef KEY_ROOM_H
#define KEY_ROOM_H

#include <stdint.h>

/* As strcmp(). */
static inline int key_compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static inline int key_compare_signed(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* The 64-bit key sub as a number below room (which is at least 1). */
static inline uint64_t key_nest(uint64_t room, uint64_t sub)
{
    return room < 2 ? 0 : sub >> (1 + __builtin_clzll(room));
}

/* Bits that hold 0 .. max. */
static inline unsigned key_bits(uint64_t max)
{
    return max ? 64u - (unsigned)__builtin_clzll(max) : 0;
}

/* A key filled bit by bit from the top. */
struct key_fill {
    uint64_t key;
    unsigned room;               /* bits that are still free */
};

/* Appends the n-bit number v (n below 64), or what of it fits. */
static inline void key_put(struct key_fill *fill, uint64_t v, unsigned n)
{
    if (n <= fill->room) {
        fill->room -= n;
        fill->key |= v << fill->room;
    } else {
        fill->key |= v >> (n - fill->room);
        fill->room = 0;
    }
}

/* Nothing more is known but that the key is at the upper end. */
static inline void key_put_ones(struct key_fill *fill)
{
    fill->key |= fill->room ? UINT64_MAX >> (64 - fill->room) : 0;
    fill->room = 0;
}

#endif
