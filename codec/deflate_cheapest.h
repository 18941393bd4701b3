/* SPDX-License-Identifier: MIT */
/* Inside the encoder, -l 1: qualities of many levels, which have many short matches and few long ones. Each position is
 * looked up in a table of the last position with the same four bytes. Then a pass from the last position to the first
 * finds what costs least to the end. No branch depends on the bytes, and only the choice is found in turn. */
#ifndef DEFLATE_CHEAPEST_H
#define DEFLATE_CHEAPEST_H

#include "codec/deflate_parse.h"

enum {
    PIECE = 256,                  /* positions whose costs are found together */
    SEEN = 16,                    /* bytes compared at once */
    BIT = 8,                      /* prices are in eighths of a bit */
    LITERAL_PRICE = 6 * BIT,
    NO_MATCH = 64 * BIT,          /* more than the literals of the shortest match */
    TOO_FAR = 128 * BIT,          /* more than SEEN literals */
};
_Static_assert(PIECE % 64 == 0, "whole words say which matches are taken");
_Static_assert((int)TOO_FAR > (int)SEEN * LITERAL_PRICE && (int)NO_MATCH > MIN_MATCH * LITERAL_PRICE, "as they say");
_Static_assert((PIECE + SEEN) * LITERAL_PRICE <= UINT16_MAX, "costs are 16 bits");
_Static_assert((int)MARGIN >= (int)SEEN, "loads stay inside the input");

/* The candidate of a position, in 16 bits: price << 5 | length. It is the sum of a length's entry and a distance's. */
#define OF_LENGTH(len, price) ((price) << 5 | (len))
static const uint16_t of_length[SEEN + 1] = {
    /* A match of less than MIN_MATCH bytes takes one byte, so that the pass goes on. */
    OF_LENGTH(1, NO_MATCH), OF_LENGTH(1, NO_MATCH), OF_LENGTH(1, NO_MATCH), OF_LENGTH(1, NO_MATCH),
    OF_LENGTH(4, 36), OF_LENGTH(5, 36), OF_LENGTH(6, 40), OF_LENGTH(7, 44), OF_LENGTH(8, 48), OF_LENGTH(9, 52),
    OF_LENGTH(10, 56), OF_LENGTH(11, 60), OF_LENGTH(12, 60), OF_LENGTH(13, 60), OF_LENGTH(14, 60), OF_LENGTH(15, 64),
    OF_LENGTH(16, 64),
};

struct cheapest {
    uint16_t *head;               /* 1 << SINGLE_BITS positions */
    uint16_t of_distance[256];    /* by the distance / 256 */
};

/* A distance costs a bit per doubling; nearer ones than 256 cost what 64 does. */
static inline void cheapest_begin(struct cheapest *c, uint16_t *head)
{
    c->head = head;
    memset(head, 0, sizeof *head << SINGLE_BITS);
    for (uint32_t i = 0; i < 256; i++)
        c->of_distance[i] = (uint16_t)((i < MAX_DIST >> 8 ? BIT * (i ? 8 + log2_floor(i) : 6) : TOO_FAR) << 5);
}

/* Finds a candidate of n positions from `at` on: candidate << 16 | what is found there. */
INLINE void cheapest_find(const struct cheapest *c, const uint8_t *in, uint32_t at, uint32_t n, uint32_t *found)
{
    for (uint32_t i = 0; i < n; i++, at++) {
        uint16_t *slot = c->head + hash(load_le64(in + at), HASH_FACTOR(MIN_MATCH), SINGLE_BITS);
        uint32_t cand = *slot;
        *slot = (uint16_t)at;
        uint32_t len = agree16(in + at, in + cand);
        found[i] = cand << 16 | (uint16_t)(of_length[len] + c->of_distance[(at - cand) >> 8]);
    }
}

/* Sets bits of taken[] where a match costs less than a literal. */
INLINE void cheapest_choose(const uint32_t *found, uint32_t n, uint64_t *taken)
{
    uint16_t cost[PIECE + SEEN];
    uint32_t last = 0;
    memset(cost + n, 0, SEEN * sizeof *cost);
    for (uint32_t end = n, begin; end > 0; end = begin) {
        uint64_t bits = 0;
        begin = (end - 1) / 64 * 64;
        for (uint32_t i = end; i-- > begin;) {
            uint32_t literal = last + LITERAL_PRICE, match = cost[i + (found[i] & 31)] + ((uint16_t)found[i] >> 5);
            last = min_u32(literal, match);
            cost[i] = (uint16_t)last;
            bits = bits << 1 | (match < literal);
        }
        taken[begin / 64] = bits;
    }
}

INLINE void cheapest_put(struct deflate_parse *d, struct parse *p, uint32_t from, uint32_t n, const uint32_t *found,
                         const uint64_t *taken)
{
    for (uint32_t i = 0; i < n;) {
        uint64_t next = taken[i / 64] >> i % 64;
        if (next == 0) {
            i = (i / 64 + 1) * 64;
            continue;
        }
        i += (uint32_t)__builtin_ctzll(next);
        uint32_t at = from + i, cand = found[i] >> 16, len = found[i] & 31;
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
    uint32_t found[PIECE];
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
