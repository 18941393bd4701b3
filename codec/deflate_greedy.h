/* SPDX-License-Identifier: MIT */
/* Inside the encoder, -l 1 and long reads: a greedy search among any bytes. Four positions are looked up at once, each
 * in a table of the last two positions with the same bytes, and the longest match of the eight is taken. It is found
 * without a branch. The table of qualities keeps the last position only, and has twice as many slots: they match so
 * often that the newest match is nearly as good. */
#ifndef DEFLATE_GREEDY_H
#define DEFLATE_GREEDY_H

#include "codec/deflate_records.h"

enum {
    GROUP = 4,
    SKIP = 6,                     /* steps grow by 1 per 64 literals in a row */
    INSERT = 3,                   /* positions inside a match are inserted three at a time, */
    STRIDE = 2,                   /* one position in two; one in three makes copies of copies 4 % larger */
    AGREE = 16,                   /* bytes compared at once */
    LAST_BITS = 13,               /* 16 KiB of the last position, for qualities. 15: 0.1 % smaller, HiSeq slower */
    FIRST_CAND = 8,               /* extend_back() loads this many bytes before a candidate */
};
_Static_assert(MARGIN >= GROUP - 1 + AGREE, "loads stay inside the input");
_Static_assert((int)GROUP <= (int)MIN_MATCH, "a match ends after all positions that are known");
_Static_assert((int)LAST_BITS <= (int)SINGLE_BITS, "single_head has these slots");
_Static_assert(STRIDE * INSERT <= FIRST, "insert_matched() does not go below 0");

struct greedy {
    union {
        uint32_t *pairs;          /* 1 << PAIR_BITS slots of two positions, the newer one lowest */
        uint16_t *singles;        /* 1 << LAST_BITS slots of a position */
    };
    uint32_t ways;                /* positions of a slot: 2 or 1 */
    uint64_t factor;              /* HASH_FACTOR() */
};

INLINE struct greedy greedy_begin(uint32_t *pairs, uint64_t factor)
{
    memset(pairs, 0, sizeof *pairs << PAIR_BITS);
    return (struct greedy){.pairs = pairs, .ways = 2, .factor = factor};
}

INLINE struct greedy greedy_begin_singles(uint16_t *singles, uint64_t factor)
{
    memset(singles, 0, sizeof *singles << LAST_BITS);
    return (struct greedy){.singles = singles, .ways = 1, .factor = factor};
}

/* Puts a position into its slot. Returns the slot's former content. */
INLINE uint32_t greedy_insert(const struct greedy *g, const uint8_t *in, uint32_t at)
{
    uint64_t bytes = load_le64(in + at);
    if (g->ways == 1) {
        uint16_t *slot = g->singles + hash(bytes, g->factor, LAST_BITS), old = *slot;
        *slot = (uint16_t)at;
        return old;
    }
    uint32_t *slot = g->pairs + hash(bytes, g->factor, PAIR_BITS), old = *slot;
    *slot = old << 16 | at;
    return old;
}

/* Rates a candidate of position at + k by the length of its match up to AGREE, then by how early the match begins. The
 * score is 0 beyond the window. */
INLINE uint32_t greedy_score(const uint8_t *in, uint32_t at, uint32_t k, uint32_t cand)
{
    uint32_t early = GROUP - 1 - k, score = agree16(in + at + k, in + cand) << 18 | early << 16 | cand;
    return score & (uint32_t)((int32_t)(at + k - cand - (MAX_DIST + 1)) >> 31);
}

struct found {
    uint32_t at, cand, len;
};

INLINE struct found found_of(uint32_t at, uint32_t score)
{
    return (struct found){at + GROUP - 1 - (score >> 16 & 3), score & 0xffff, score >> 18};
}

INLINE void extend_found(const struct parse *p, struct found *f)
{
    if (f->len == AGREE)
        f->len = extend(p->in + f->at, p->in + f->cand, AGREE, min_u32(p->n - f->at, MAX_MATCH));
}

/* Some of n candidates agree in AGREE bytes, and *f is the first of these. Replaces *f by the nearest of these if the
 * match of the nearest ends no earlier. */
INLINE void or_nearest(const struct parse *p, const uint32_t *score, uint32_t n, struct found *f)
{
    uint32_t best = 0;            /* (cand + early) << 2 | early; the sum is largest where the distance is smallest */
    UNROLL(8)
    for (uint32_t i = 0; i < n; i++) {
        uint32_t early = score[i] >> 16 & 3, whole = score[i] >> 18 == AGREE;
        best = max_u32(best, whole * (((score[i] & 0xffff) + early) << 2 | early));
    }
    uint32_t early = best & 3;
    struct found near = {p->at + GROUP - 1 - early, (best >> 2) - early, AGREE};
    if (near.at - near.cand >= f->at - f->cand || near.cand < FIRST_CAND)
        return;
    extend_found(p, &near);
    if (near.at + near.len >= f->at + f->len)
        *f = near;
}

/* Inserts positions of a match; if it is short, also positions before it. The loop rarely runs more than twice, since a
 * count that is hard to predict costs more than inserting a position again. */
INLINE void insert_matched(const struct greedy *g, const uint8_t *in, uint32_t at, uint32_t end)
{
    uint32_t final = end - STRIDE * INSERT + STRIDE - 1;
    for (; at < final; at += STRIDE * INSERT)
        UNROLL(3)
        for (uint32_t i = 0; i < INSERT; i++)
            greedy_insert(g, in, at + STRIDE * i);
    UNROLL(3)
    for (uint32_t i = 0; i < INSERT; i++)
        greedy_insert(g, in, final + STRIDE * i);
}

INLINE void parse_greedily(struct deflate_parse *d, struct parse *state, uint32_t from, uint32_t to,
                           const struct greedy g)
{
    struct parse p = *state;
    p.at = max_u32(p.at, max_u32(p.anchor, from));
    for (uint32_t stop = min_u32(to, p.last); p.at < stop;) {
        uint32_t score[2 * GROUP], best = 0;
        UNROLL(4)
        for (uint32_t k = 0; k < GROUP; k++) {
            uint32_t cands = greedy_insert(&g, p.in, p.at + k);
            score[k] = greedy_score(p.in, p.at, k, cands & 0xffff);
            if (g.ways == 2)
                score[GROUP + k] = greedy_score(p.in, p.at, k, cands >> 16);
        }
        UNROLL(8)
        for (uint32_t i = 0; i < g.ways * GROUP; i++)
            best = max_u32(best, score[i]);
        struct found f = found_of(p.at, best);
        if (f.len < MIN_MATCH || f.cand < FIRST_CAND) {
            p.at += GROUP + ((p.at - p.anchor) >> SKIP);
            continue;
        }
        if (f.len == AGREE) {
            extend_found(&p, &f);
            or_nearest(&p, score, g.ways * GROUP, &f);
        }
        put_extended(d, &p, f.at, f.cand, f.len);
        if (p.at < p.last)
            insert_matched(&g, p.in, f.at + GROUP, p.at);
    }
    *state = p;
}

/* One function for each kind of slots and of processors: inlined at each call, they would take a third of the
 * compiler's time. */
#define GREEDILY(name, slots, n, target) \
    target static NOINLINE void name(struct deflate_parse *d, struct parse *p, uint32_t from, uint32_t to, \
                                     const struct greedy *g) \
    { \
        parse_greedily(d, p, from, to, (struct greedy){.slots = g->slots, .ways = n, .factor = g->factor}); \
    }
GREEDILY(pairs_older, pairs, 2, )
GREEDILY(pairs_newer, pairs, 2, NEWER_AVX2)
GREEDILY(singles_older, singles, 1, )
GREEDILY(singles_newer, singles, 1, NEWER_AVX2)

/* Matches what is not matched yet of [from, to). */
INLINE void match_greedily(struct deflate_parse *d, struct parse *p, uint32_t from, uint32_t to,
                           const struct greedy *g, agree64_fn *agree)
{
    bool newer = agree == agree64_avx2;
    if (g->ways == 1)
        (newer ? singles_newer : singles_older)(d, p, from, to, g);
    else
        (newer ? pairs_newer : pairs_older)(d, p, from, to, g);
}

#endif
