/* SPDX-License-Identifier: MIT */
/* Keys inside keys. A key is a number below some range. The values that a key leaves undecided are its room: a number
 * of consecutive keys, into which the key of the next criterion is put. That sub-key is left-aligned, so its first bits
 * matter most: without its last bits the order is the same and only less is decided. */
#ifndef KEY_ROOM_H
#define KEY_ROOM_H

#include <stdint.h>

/* Returns < 0, 0 or > 0, as strcmp() does. */
static inline int key_compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static inline int key_compare_signed(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Scales the left-aligned 64-bit key `sub` to a number below room, which must be at least 1. */
static inline uint64_t key_nest(uint64_t room, uint64_t sub)
{
    return room < 2 ? 0 : sub >> (1 + __builtin_clzll(room));
}

/* Number of bits that hold every value in 0 .. max. */
static inline unsigned key_bits(uint64_t max)
{
    return max ? 64u - (unsigned)__builtin_clzll(max) : 0;
}

/* A key that is filled bit by bit from the top. */
struct key_fill {
    uint64_t key;
    unsigned room;               /* bits that are still free */
};

/* Appends the n-bit number v, n below 64. If fewer than n bits are free, appends only the upper bits of v. */
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

/* Fills the free bits with ones: the rest is only known to be at the upper end. */
static inline void key_put_ones(struct key_fill *fill)
{
    fill->key |= fill->room ? UINT64_MAX >> (64 - fill->room) : 0;
    fill->room = 0;
}

#endif
