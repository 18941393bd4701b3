/* SPDX-License-Identifier: MIT */
/* Inside the encoder, -l 1: qualities of many levels, which have many short matches and few long ones. Each position is
 * looked up in a table of the last position with the same four bytes. Then a pass from the last position to the first
 * finds which matches save most to the end. No branch depends on the bytes, and only the choice is found in turn. */
#ifndef DEFLATE_CHEAPEST_H
#define DEFLATE_CHEAPEST_H

#include "codec/deflate_parse.h"

enum {
    PIECE = 256,                  /* positions whose matches are chosen together */
    SEEN = 16,                    /* bytes compared at once */
    BIT = 8,                      /* prices are in eighths of a bit */
    LITERAL_PRICE = 6 * BIT,
    FIVE = 36,                    /* five bytes, without their distance */
    FURTHEST = 14 * BIT,          /* the largest distance */
    TOO_FAR = 127 * BIT,          /* more than SEEN literals */
    SAVED_SHIFT = 21, LEN_SHIFT = 16, LEN_BITS = SAVED_SHIFT - LEN_SHIFT,
};
_Static_assert(PIECE % 64 == 0, "whole words say which matches are taken");
_Static_assert((int)TOO_FAR > (int)SEEN * LITERAL_PRICE, "no match beyond the window saves anything");
_Static_assert((int)TOO_FAR < 1 << (31 - SAVED_SHIFT) && (int)SEEN < 1 << LEN_BITS, "a candidate has room for both");
_Static_assert((int)MARGIN >= (int)SEEN, "loads stay inside the input");

/* The candidate of a position: what its match saves << SAVED_SHIFT | length << LEN_SHIFT | its place. It is the sum of
 * a length's entry and the place, minus a distance's entry. */
#define OF_LENGTH(len, price) ((len) * (1 << LEN_SHIFT) + ((len) * LITERAL_PRICE - (price)) * (1 << SAVED_SHIFT))
static const int32_t of_length[SEEN + 1] = {
    /* Less than MIN_MATCH bytes save nothing, and any distance costs something. */
    OF_LENGTH(1, LITERAL_PRICE), OF_LENGTH(1, LITERAL_PRICE), OF_LENGTH(1, LITERAL_PRICE), OF_LENGTH(1, LITERAL_PRICE),
    OF_LENGTH(4, 36), OF_LENGTH(5, FIVE), OF_LENGTH(6, 40), OF_LENGTH(7, 44), OF_LENGTH(8, 48), OF_LENGTH(9, 52),
    OF_LENGTH(10, 56), OF_LENGTH(11, 60), OF_LENGTH(12, 60), OF_LENGTH(13, 60), OF_LENGTH(14, 60), OF_LENGTH(15, 64),
    OF_LENGTH(16, 64),
};

struct cheapest {
    uint16_t *head;               /* 1 << SINGLE_BITS positions */
    int32_t of_distance[256];     /* by the distance / 256 */
};

/* A distance costs a bit per doubling; nearer ones than 256 cost what 64 does. */
static inline void cheapest_begin(struct cheapest *c, uint16_t *head)
{
    c->head = head;
    memset(head, 0, sizeof *head << SINGLE_BITS);
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t price = i < MAX_DIST >> 8 ? BIT * (i ? 8 + log2_floor(i) : 6) : TOO_FAR;
        c->of_distance[i] = (int32_t)(price << SAVED_SHIFT);
    }
}

/* Finds a candidate of n positions from `at` on. */
INLINE void cheapest_find(const struct cheapest *c, const uint8_t *in, uint32_t at, uint32_t n, int32_t *found)
{
    uint16_t *head = c->head;
    UNROLL(4)
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *here = in + at + i;
        uint16_t *slot = head + hash(load_le64(here), HASH_FACTOR(MIN_MATCH), SINGLE_BITS);
        uint64_t cand = *slot;
        *slot = (uint16_t)(at + i);
        found[i] = of_length[agree16(here, in + cand)] - c->of_distance[(at + i - cand) >> 8] + (int32_t)cand;
    }
}

INLINE uint32_t found_len(int32_t found) { return (uint32_t)found >> LEN_SHIFT & ((1 << LEN_BITS) - 1); }

/* Sets bits of taken[] where a match saves more than a literal, which saves nothing. Bytes of a match after the n
 * positions save nothing either. */
INLINE void cheapest_choose(const int32_t *found, uint32_t n, uint64_t *taken)
{
    int32_t saved[PIECE + SEEN];
    int64_t most = 0;             /* in 32 bits, gcc takes the maximum in a vector, which is slower */
    for (int k = 0; k < SEEN; k++)
        saved[n + (uint32_t)k] = -k * LITERAL_PRICE;
    for (uint32_t end = n, begin; end > 0; end = begin) {
        uint64_t bits = 0;
        begin = (end - 1) / 64 * 64;
        UNROLL(4)
        for (size_t i = end; i-- > begin;) {
            int64_t match = saved[i + found_len(found[i])] + (found[i] >> SAVED_SHIFT);
            bits += bits + (match > most);
            most = match > most ? match : most;
            saved[i] = (int32_t)most;
        }
        taken[begin / 64] = bits;
    }
}

INLINE void cheapest_put(struct deflate_parse *d, struct parse *p, uint32_t from, uint32_t n, const int32_t *found,
                         const uint64_t *taken)
{
    for (uint32_t i = 0; i < n;) {
        uint64_t next = taken[i / 64] >> i % 64;
        if (next == 0) {
            i = (i / 64 + 1) * 64;
            continue;
        }
        i += (uint32_t)__builtin_ctzll(next);
        uint32_t at = from + i, cand = (uint16_t)found[i], len = found_len(found[i]);
        if (len == SEEN)
            len = extend(p->in + at, p->in + cand, len, min_u32(p->n - at, MAX_MATCH));
        put_match(d, p, at, len, at - cand);
        p->dist = at - cand;
        i += len;
    }
}

/* Matches what is not matched yet of [from, to). */
INLINE void match_cheapest(struct deflate_parse *d, struct parse *p, uint32_t from, uint32_t to,
                           const struct cheapest *c)
{
    int32_t found[PIECE];
    uint64_t taken[PIECE / 64];
    to = min_u32(to, p->last);
    for (uint32_t n; (from = max_u32(from, p->anchor)) < to; from += n) {
        n = min_u32(to - from, PIECE);
        cheapest_find(c, p->in, from, n, found);
        cheapest_choose(found, n, taken);
        cheapest_put(d, p, from, n, found, taken);
    }
}

#endif
