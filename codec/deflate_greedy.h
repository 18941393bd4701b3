/* SPDX-License-Identifier: MIT */
/* Inside the encoder: matches any bytes greedily. Four positions are looked up at once, and their longest match is
 * taken, which is found without a branch. A table holds the last position with the same hash, or the last two. */
#ifndef DEFLATE_GREEDY_H
#define DEFLATE_GREEDY_H

#include "codec/deflate_parse.h"

enum {
    GROUP = 4,
    SKIP = 6,                     /* steps grow by 1 per 64 literals in a row */
    INSERT = 3,                   /* positions inside a match are inserted three at a time */
    AGREE = 16,                   /* bytes compared at once */
    PIECE = 256,                  /* positions looked up before matches are chosen */
    FIRST_CAND = 8,               /* extend_back() loads this many bytes before a candidate */
};
_Static_assert(MARGIN >= GROUP - 1 + AGREE, "loads stay inside the input");

struct greedy {
    uint8_t *head;                /* 2 << bits bytes: positions, 16 bits each */
    uint64_t factor;              /* HASH_FACTOR() */
    uint32_t bits;                /* of the hash of single positions; pairs have one less */
    uint32_t stride;              /* one position of a match in this many is inserted */
    uint32_t far_of_4;            /* a match of MIN_MATCH bytes must be nearer */
    bool pairs;                   /* a slot holds the last two positions, not only the last */
    bool nearest;                 /* the nearest of equally long matches is taken, not the first */
    bool ahead;                   /* all positions are looked up, and before matches are chosen: see parse_ahead();
                                     needs `nearest`, and not `pairs` */
    uint32_t net;                 /* LESS_LITERALS: matches are rated by length minus the literals before them, then by
                                     length; 0: by length, then the first is taken. Without `nearest` only */
};

enum { LESS_LITERALS = GROUP - 1 };
_Static_assert((GROUP & LESS_LITERALS) == 0, "a mask");

/* Puts a position into its slot. Returns the slot's former content, the newer position lowest. */
INLINE uint32_t greedy_insert(const struct greedy *g, const uint8_t *in, uint32_t at)
{
    uint64_t v = load_le64(in + at);
    if (!g->pairs) {
        uint8_t *slot = g->head + 2 * hash(v, g->factor, g->bits);
        uint32_t old = load_le16(slot);
        store_le16(slot, (uint16_t)at);
        return old;
    }
    uint8_t *slot = g->head + 4 * hash(v, g->factor, g->bits - 1);
    uint32_t old = load_le32(slot);
    store_le32(slot, old << 16 | at);
    return old;
}

/* Rates a candidate by the length of its match up to AGREE, then by how near it is or how early the match begins, or as
 * g->net states. The score is 0 beyond the window. */
INLINE uint32_t greedy_score(const struct greedy *g, const uint8_t *in, uint32_t at, uint32_t k, uint32_t cand)
{
    uint32_t early = GROUP - 1 - k, score = agree16(in + at + k, in + cand) << 18;
    score += g->nearest ? cand << 2 | early : ((early & g->net) << 18 | (early ^ g->net) << 16) + cand;
    return score & (uint32_t)((int32_t)(at + k - cand - (MAX_DIST + 1)) >> 31);
}

struct found {
    uint32_t at, cand, len;
};

INLINE struct found found_of(const struct greedy *g, uint32_t at, uint32_t score)
{
    uint32_t early = g->nearest ? score & 3 : (score >> 16 & 3) ^ g->net;
    return (struct found){
        at + GROUP - 1 - early, (g->nearest ? score >> 2 : score) & 0xffff, (score >> 18) - (early & g->net),
    };
}

/* Inserts positions of a match; if it is short, also positions before it. The loop rarely runs more than twice, since a
 * count that is hard to predict costs more than inserting a position again. */
INLINE void insert_matched(const struct greedy *g, const uint8_t *in, uint32_t at, uint32_t end)
{
    uint32_t stride = g->stride, final = end - stride * INSERT + stride - 1;
    for (; at < final; at += stride * INSERT)
        UNROLL(3)
        for (uint32_t i = 0; i < INSERT; i++)
            greedy_insert(g, in, at + stride * i);
    UNROLL(3)
    for (uint32_t i = 0; i < INSERT; i++)
        greedy_insert(g, in, final + stride * i);
}

INLINE void extend_found(const struct parse *p, struct found *f)
{
    if (f->len == AGREE)
        f->len = extend(p->in + f->at, p->in + f->cand, AGREE, min_u32(p->n - f->at, MAX_MATCH));
}

/* Some of the n candidates agree in AGREE bytes, and *f is the first of these. Replaces *f by the nearest of these if
 * the match of the nearest ends no earlier. */
INLINE void or_nearest(const struct greedy *g, const struct parse *p, const uint32_t *score, uint32_t n,
                       struct found *f)
{
    uint32_t best = 0;            /* (cand + early) << 2 | early; the sum is largest where the distance is smallest */
    UNROLL(8)
    for (uint32_t i = 0; i < n; i++) {
        uint32_t early = (score[i] >> 16 & 3) ^ g->net, whole = (score[i] >> 18) - (early & g->net) == AGREE;
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

/* Looks up and rates n positions from `at` on, or up to GROUP - 1 more. Returns how many. The GROUP positions after
 * them get the score 0. */
INLINE uint32_t look_up(const struct greedy *g, const uint8_t *in, uint32_t at, uint32_t n, uint32_t *score)
{
    uint32_t i = 0;
    for (; i < n; i += GROUP)
        UNROLL(4)
        for (uint32_t k = 0; k < GROUP; k++) {
            uint32_t cand = greedy_insert(g, in, at + i + k);
            score[i + k] = greedy_score(g, in, at + i + k - (GROUP - 1), GROUP - 1, cand);
        }
    memset(score + i, 0, GROUP * sizeof *score);
    return i;
}

/* parse_in_turn() looks a position up when the match before it is known. Where matches are short, that wait takes most
 * of its time. Here only the choice of a match waits for the match before. */
INLINE void parse_ahead(struct deflate_parse *d, struct parse *state, uint32_t stop, const struct greedy *g)
{
    struct parse p = *state;
    uint32_t score[PIECE + GROUP];
    for (uint32_t from = p.at, end; from < stop; from = max_u32(end, p.at)) {
        end = from + look_up(g, p.in, from, min_u32(stop - from, PIECE), score);
        while (p.at < end) {
            uint32_t best = 0;
            UNROLL(4)
            for (uint32_t k = 0; k < GROUP; k++)
                best = max_u32(best, score[p.at - from + k] + (GROUP - 1 - k));
            struct found f = found_of(g, p.at, best);
            if (f.len < MIN_MATCH + (f.at - f.cand >= g->far_of_4) || f.cand < FIRST_CAND) {
                p.at += GROUP;
                continue;
            }
            extend_found(&p, &f);
            put_extended(d, &p, f.at, f.cand, f.len);
        }
    }
    *state = p;
}
_Static_assert(MARGIN >= 2 * GROUP - 2 + AGREE, "loads of what is looked up beyond stop stay inside the input");

INLINE void parse_in_turn(struct deflate_parse *d, struct parse *state, uint32_t stop, const struct greedy *g)
{
    struct parse p = *state;
    while (p.at < stop) {
        uint32_t score[2 * GROUP], n = g->pairs ? 2 * GROUP : GROUP, best = 0;
        UNROLL(4)
        for (uint32_t k = 0; k < GROUP; k++) {
            uint32_t cands = greedy_insert(g, p.in, p.at + k);
            score[k] = greedy_score(g, p.in, p.at, k, cands & 0xffff);
            if (g->pairs)
                score[GROUP + k] = greedy_score(g, p.in, p.at, k, cands >> 16);
        }
        UNROLL(8)
        for (uint32_t i = 0; i < n; i++)
            best = max_u32(best, score[i]);
        struct found f = found_of(g, p.at, best);
        if (f.len < MIN_MATCH + (f.at - f.cand >= g->far_of_4) || f.cand < FIRST_CAND) {
            p.at += GROUP + ((p.at - p.anchor) >> SKIP);
            continue;
        }
        if (f.len == AGREE) {
            extend_found(&p, &f);
            if (g->pairs)
                or_nearest(g, &p, score, n, &f);
        }
        put_extended(d, &p, f.at, f.cand, f.len);
        if (p.at < p.last)
            insert_matched(g, p.in, f.at + GROUP, p.at);
    }
    *state = p;
}

/* Puts the matches that begin before stop. */
INLINE void parse_greedy(struct deflate_parse *d, struct parse *p, uint32_t stop, const struct greedy *g)
{
    if (g->ahead)
        parse_ahead(d, p, stop, g);
    else
        parse_in_turn(d, p, stop, g);
}

/* Matches what is not matched yet of [from, to). */
INLINE void match_greedily(struct deflate_parse *d, struct parse *p, uint32_t from, uint32_t to, const struct greedy *g)
{
    p->at = max_u32(p->at, max_u32(p->anchor, from));
    parse_greedy(d, p, min_u32(to, p->last), g);
}

#endif
