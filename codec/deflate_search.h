/* SPDX-License-Identifier: MIT */
/* Inside the encoder, default level: a lazy search among the last positions of two hashes, for fields that are
 * alike. */
#ifndef DEFLATE_SEARCH_H
#define DEFLATE_SEARCH_H

#include "codec/deflate_records.h"

enum {
    /* Slots are fetched this many positions ahead: 2 to 3 % faster; 8 or 16 are not better. */
    AHEAD = 4,
    DENSE_LEN = 16,               /* in longer matches every other position is inserted: up to 8 % faster, 0.1 to 0.2 %
                                   * larger */
    LAZY_SKIP = 8,                /* steps grow by 1 per 2^LAZY_SKIP literals in a row */
    NICE_LEN = 258,               /* a match this long ends the search for a better one; 128 is up to 0.06 % larger */
    /* A match one or two bytes later must gain this much more, in quarter bytes. */
    BIAS_1 = 1,
    BIAS_2 = 7,
};

static inline void lazy_begin(struct deflate_parse *d)
{
    memset(d->long_head, 0, sizeof d->long_head);
    memset(d->short_head, 0, sizeof d->short_head);
}

struct match {
    uint32_t len, cand;           /* cand 0: none found */
    int32_t gain;
};

/* Takes the candidate if its gain is higher. The gain is what it saves, in quarter bytes, minus the bits of its
 * distance. */
static inline void consider(struct match *m, uint32_t at, uint32_t cand, uint32_t len)
{
    int32_t gain = (int32_t)(4 * len) - (int32_t)log2_floor(at - cand);
    if (gain > m->gain)
        *m = (struct match){len, cand, gain};
}

/* Positions that may begin with the same bytes, the newest in the lowest bits. */
struct cands {
    uint64_t longs;
    uint32_t shorts;
};

/* Puts a position into its slots. Returns the slots' former content. */
INLINE struct cands lazy_insert(struct deflate_parse *d, const uint8_t *in, uint32_t at)
{
    uint64_t v = load_le64(in + at), *l = &d->long_head[hash(v, HASH_FACTOR(LONG_BYTES), LONG_BITS)];
    uint32_t *s = &d->short_head[hash(v, HASH_FACTOR(SHORT_BYTES), SHORT_BITS)];
    struct cands old = {*l, *s};
    *l = old.longs << 16 | at;
    *s = old.shorts << 16 | at;
    return old;
}

/* Fetches the slots of a position, so that a later search there does not wait for memory. */
INLINE void prefetch(const struct deflate_parse *d, const uint8_t *at)
{
    uint64_t v = load_le64(at);
    __builtin_prefetch(&d->long_head[hash(v, HASH_FACTOR(LONG_BYTES), LONG_BITS)]);
    __builtin_prefetch(&d->short_head[hash(v, HASH_FACTOR(SHORT_BYTES), SHORT_BITS)]);
}

/* Returns which of four candidates have the eight bytes v `offset` bytes after them: bit k for the k-th. All four are
 * compared, since a branch for each of them costs more: 3 to 7 % of the speed. */
INLINE uint32_t same_cands(const uint8_t *in, uint64_t cands, uint32_t offset, uint64_t v)
{
    uint32_t same = 0;
    UNROLL(4)
    for (uint32_t k = 0; k < LONG_WAYS; k++)
        same |= (uint32_t)(load_le64(in + (cands >> 16 * k & 0xffff) + offset) == v) << k;
    return same;
}

INLINE void find_long(struct match *m, const struct parse *p, uint32_t at, uint64_t cands)
{
    const uint8_t *here = p->in + at;
    uint32_t limit = min_u32(p->n - at, MAX_MATCH), furthest = min_u32(at - 1, MAX_DIST);    /* 0: an empty slot */
    if (m->len >= limit)
        return;
    uint32_t offset = m->len >= 8 ? m->len - 7 : 0;
    uint64_t v = load_le64(here), further = load_le64(here + offset);
    for (uint32_t hits = same_cands(p->in, cands, offset, further); hits; hits &= hits - 1) {
        uint32_t cand = cands >> 16 * (uint32_t)__builtin_ctz(hits) & 0xffff;
        const uint8_t *there = p->in + cand;
        /* Nearer candidates came first, so only a longer match can be better. */
        if (m->len >= 8 && (m->len >= limit || load_le64(there + m->len - 7) != load_le64(here + m->len - 7)))
            continue;
        if (load_le64(there) != v || at - cand > furthest)
            continue;
        consider(m, at, cand, extend(here, there, 8, limit));
    }
}

/* Rates a candidate by its length up to 7, then by how near it is. */
static inline uint32_t score_short(const uint8_t *in, uint64_t v, uint32_t at, uint32_t cand)
{
    uint64_t x = (load_le64(in + cand) ^ v) | 1ull << 63;
    uint32_t score = (uint32_t)__builtin_ctzll(x) / 8 << 16 | cand;
    return score & (uint32_t)((int32_t)(at - cand - (MAX_DIST + 1)) >> 31);
}

static inline void find_short(struct match *m, const struct parse *p, uint32_t at, uint32_t cands)
{
    const uint8_t *in = p->in;
    uint64_t v = load_le64(in + at);
    uint32_t best = max_u32(score_short(in, v, at, cands & 0xffff), score_short(in, v, at, cands >> 16));
    uint32_t cand = best & 0xffff, len = best >> 16;
    if (len < MIN_MATCH)
        return;
    if (len == 7)
        len = extend(in + at, in + cand, 7, min_u32(p->n - at, MAX_MATCH));
    consider(m, at, cand, len);
}

/* Inserts position `at`. Puts a match that gains more than *m and the bias into *m; returns whether there is one. */
INLINE bool find(struct deflate_parse *d, const struct parse *p, uint32_t at, struct match *m,
                 int32_t bias)
{
    struct cands old = lazy_insert(d, p->in, at);
    prefetch(d, p->in + at + AHEAD);
    struct match better = {m->len, 0, m->gain + bias};
    find_long(&better, p, at, old.longs);
    if (better.cand == 0 && m->len < 8)
        find_short(&better, p, at, old.shorts);
    if (better.cand == 0)
        return false;
    *m = better;
    return true;
}

INLINE void parse_lazily(struct deflate_parse *d, struct parse *state, uint32_t from, uint32_t to)
{
    struct parse p = *state;
    uint32_t stop = min_u32(to, p.last);
    for (; from < min_u32(p.anchor, stop); from++)
        lazy_insert(d, p.in, from);
    for (p.at = from; p.at < stop;) {
        struct match m = {0};
        uint32_t at = p.at, seen = at;
        if (!find(d, &p, at, &m, 0)) {
            p.at += 1 + ((at - p.anchor) >> LAZY_SKIP);
            continue;
        }
        while (m.len < NICE_LEN && seen + 2 < p.last) {
            seen = at + 1;
            if (find(d, &p, seen, &m, BIAS_1)) {
                at = seen;
                continue;
            }
            seen = at + 2;
            if (!find(d, &p, seen, &m, BIAS_2))
                break;
            at = seen;
        }
        put_extended(d, &p, at, m.cand, m.len);
        uint32_t end = min_u32(p.at, p.last), step = 1u + (m.len > DENSE_LEN);
        for (uint32_t i = seen + 1; i < end; i += step)
            lazy_insert(d, p.in, i);
    }
    *state = p;
}

/* One function for each kind of processor: inlined at each call, they would take two thirds of the compiler's time. */
static NOINLINE void lazily_older(struct deflate_parse *d, struct parse *p, uint32_t from, uint32_t to)
{
    parse_lazily(d, p, from, to);
}
NEWER_AVX2 static NOINLINE void lazily_newer(struct deflate_parse *d, struct parse *p, uint32_t from, uint32_t to)
{
    parse_lazily(d, p, from, to);
}

/* Matches [from, to). Positions there that are matched already are only inserted. */
INLINE void match_lazily(struct deflate_parse *d, struct parse *p, uint32_t from, uint32_t to, agree64_fn *agree)
{
    (agree == agree64_avx2 ? lazily_newer : lazily_older)(d, p, from, to);
}

#endif
