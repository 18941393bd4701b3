/* SPDX-License-Identifier: MIT */
/* Inside the encoder, -l 1: greedy matching of bytes. Four positions are looked up at once, and their longest match is
 * taken; it is found without a branch. A table holds the last position with the same hash. */
#ifndef DEFLATE_GREEDY_H
#define DEFLATE_GREEDY_H

#include "codec/deflate_parse.h"

enum {
    GROUP = 4,
    SKIP = 6,                     /* steps grow by 1 per 64 literals in a row */
    STRIDE = 3,                   /* one in this many positions of a match is inserted */
    INSERT = 3,                   /* positions that are inserted at a time */
    AGREE = 16,                   /* bytes that are compared at once */
    PIECE = 256,                  /* positions that are looked up before matches are chosen */
    FIRST_CAND = 8,               /* extend_back() loads this many bytes before a candidate */
};
_Static_assert(MARGIN >= GROUP - 1 + AGREE, "loads stay inside the input");

struct greedy {
    uint8_t *head;                /* 2 << bits bytes: the last position, 16 bits */
    uint64_t factor;              /* HASH_FACTOR() */
    uint32_t bits;                /* of the hash */
    bool ahead;                   /* all positions are looked up, before matches are chosen */
};

/* Puts a position into its slot. Returns the slot's former content. */
INLINE uint32_t greedy_insert(const struct greedy *g, const uint8_t *in, uint32_t at)
{
    uint8_t *slot = g->head + 2 * hash(load_le64(in + at), g->factor, g->bits);
    uint32_t old = load_le16(slot);
    store_le16(slot, (uint16_t)at);
    return old;
}

/* Rates a candidate by the length of its match up to AGREE, then by how near it is; 0 beyond the window. */
INLINE uint32_t greedy_score(const uint8_t *in, uint32_t at, uint32_t k, uint32_t cand)
{
    uint32_t score = agree16(in + at + k, in + cand) << 18 | cand << 2 | (GROUP - 1 - k);
    return score & (uint32_t)((int32_t)(at + k - cand - (MAX_DIST + 1)) >> 31);
}

struct found {
    uint32_t at, cand, len;
};

INLINE struct found found_of(uint32_t at, uint32_t score)
{
    return (struct found){at + GROUP - 1 - (score & 3), score >> 2 & 0xffff, score >> 18};
}

INLINE bool is_found(const struct found *f) { return f->len >= MIN_MATCH && f->cand >= FIRST_CAND; }

/* Inserts positions of a match, and positions before it if the match is short. The loop rarely runs more than twice: a
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

INLINE void extend_found(const struct parse *p, struct found *f)
{
    if (f->len == AGREE)
        f->len = extend(p->in + f->at, p->in + f->cand, AGREE, min_u32(p->n - f->at, MAX_MATCH));
}

/* Looks up and rates n positions from `at` on, or up to GROUP - 1 more. Returns how many positions it rated. The scores
 * of the GROUP positions after them become 0. */
INLINE uint32_t look_up(const struct greedy *g, const uint8_t *in, uint32_t at, uint32_t n, uint32_t *score)
{
    uint32_t i = 0;
    for (; i < n; i += GROUP)
        UNROLL(4)
        for (uint32_t k = 0; k < GROUP; k++) {
            uint32_t cand = greedy_insert(g, in, at + i + k);
            score[i + k] = greedy_score(in, at + i + k - (GROUP - 1), GROUP - 1, cand);
        }
    memset(score + i, 0, GROUP * sizeof *score);
    return i;
}

/* parse_in_turn() looks up a position when the match before it is known. Where matches are short, it spends most of its
 * time waiting for this. Here only the choice of a match waits for the match before. */
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
            struct found f = found_of(p.at, best);
            if (!is_found(&f)) {
                p.at += GROUP;
                continue;
            }
            extend_found(&p, &f);
            put_match(d, &p, f.at, f.cand, f.len);
        }
    }
    *state = p;
}
_Static_assert(MARGIN >= 2 * GROUP - 2 + AGREE, "loads of what is looked up beyond stop stay inside the input");

INLINE void parse_in_turn(struct deflate_parse *d, struct parse *state, uint32_t stop, const struct greedy *g)
{
    struct parse p = *state;
    while (p.at < stop) {
        uint32_t best = 0;
        UNROLL(4)
        for (uint32_t k = 0; k < GROUP; k++)
            best = max_u32(best, greedy_score(p.in, p.at, k, greedy_insert(g, p.in, p.at + k)));
        struct found f = found_of(p.at, best);
        if (!is_found(&f)) {
            p.at += GROUP + ((p.at - p.anchor) >> SKIP);
            continue;
        }
        extend_found(&p, &f);
        put_match(d, &p, f.at, f.cand, f.len);
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

#endif
