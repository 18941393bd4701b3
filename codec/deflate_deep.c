/* SPDX-License-Identifier: MIT */
/* The default level where the lazy search gives up too much (deflate_lazy.c tells where): all positions are kept, in
 * chains of those with the same hash, and many of each chain are looked at. Half as fast as the lazy search, 1 to 10 %
 * smaller on such blocks. */
#include "codec/deflate_search.h"

enum {
    /* Positions looked at. 32 instead of 48 with the same 8 bytes are 5 % faster, 0.1 to 0.3 % larger, where many reads
     * lie at a place 1.5 %. */
    LONG_DEPTH = 48,
    SHORT_DEPTH = 16,
    /* For what fields would make too large: 48 and 16 are 0.5 to 1.2 % smaller there, and take 1.4 times as long; 16
     * are up to 1.02 of libdeflate's level 7. */
    SHALLOW_LONG = 24,
    SHALLOW_SHORT = 4,
};
_Static_assert(FIRST > 0, "position 0 ends a chain");

/* Positions are put in once, in ascending order; returns the one before with the same hash. */
INLINE uint32_t chain_insert(struct chain *c, uint32_t hash, uint32_t at)
{
    uint32_t before = c->head[hash];
    c->next[at % MAX_DIST] = (uint16_t)before;
    c->head[hash] = (uint16_t)at;
    return before;
}

struct newest {
    uint32_t with_8, with_4;      /* positions that may begin with the same bytes; older ones follow in the chain */
};

INLINE struct newest deep_insert(struct deflate_parse *d, const uint8_t *in, uint32_t at)
{
    uint64_t v = load_le64(in + at);
    return (struct newest){
        chain_insert(&d->long_chain, hash(v, HASH_FACTOR(LONG_BYTES), CHAIN_BITS), at),
        chain_insert(&d->short_chain, hash(v, HASH_FACTOR(SHORT_BYTES), CHAIN_BITS), at),
    };
}

/* Goes from cand to older positions; takes those that agree for longer than any before, until one does for `enough`. */
INLINE void deep_walk(const struct chain *c, const struct parse *p, uint32_t at, uint32_t cand, uint32_t depth,
                      uint32_t enough, uint32_t *len, struct match *m)
{
    const uint8_t *here = p->in + at;
    uint32_t limit = min_u32(p->n - at, MAX_MATCH), v = load_le32(here);
    uint32_t oldest = max_u32(at, MAX_DIST) - MAX_DIST;
    for (; depth > 0 && cand > oldest && *len < min_u32(enough, limit); depth--, cand = c->next[cand % MAX_DIST]) {
        const uint8_t *there = p->in + cand;
        uint32_t offset = max_u32(*len, 3) - 3;
        if (load_le32(there + offset) != load_le32(here + offset) || load_le32(there) != v)
            continue;
        uint32_t agree = extend(here, there, 4, limit);
        if (agree <= *len)
            continue;
        *len = agree;
        consider(m, at, cand, agree);
    }
}

/* Inserts position at. Is there a match that gains more than m and bias? To m with it. */
INLINE bool deep_find(struct deflate_parse *d, const struct parse *p, uint32_t at, struct match *m, int32_t bias,
                      const struct tuning *t)
{
    struct newest newest = deep_insert(d, p->in, at);
    struct match better = {m->len, 0, m->gain + bias};
    uint32_t len = m->len;
    uint32_t depth = t->shallow ? SHALLOW_LONG : LONG_DEPTH, depth_4 = t->shallow ? SHALLOW_SHORT : SHORT_DEPTH;
    deep_walk(&d->long_chain, p, at, newest.with_8, depth, MAX_MATCH, &len, &better);
    if (len < LONG_BYTES)
        deep_walk(&d->short_chain, p, at, newest.with_4, depth_4, LONG_BYTES, &len, &better);
    if (better.cand == 0)
        return false;
    *m = better;
    return true;
}

INLINE void parse_deep(struct deflate_parse *d, struct parse *state, uint32_t stop, const struct tuning *t)
{
    struct parse p = *state;
    while (p.at < stop) {
        struct match m = {.gain = t->min_gain};
        uint32_t at = p.at, seen = at;
        if (!deep_find(d, &p, at, &m, 0, t)) {
            p.at++;
            continue;
        }
        while (m.len < MAX_MATCH && seen + 2 < p.last) {
            seen = at + 1;
            if (!deep_find(d, &p, seen, &m, BIAS_1, t)) {
                if (!t->two_steps)
                    break;
                seen = at + 2;
                if (!deep_find(d, &p, seen, &m, BIAS_2, t))
                    break;
            }
            at = seen;
        }
        put_match(d, &p, at, m.cand, m.len);
        uint32_t end = min_u32(p.at, p.last), step = 1u + (m.len > t->dense_len);
        for (uint32_t i = seen + 1; i < end; i += step)
            deep_insert(d, p.in, i);
    }
    *state = p;
}

INLINE void parse_segments(struct deflate_parse *d, struct parse *p, const struct tuning *t)
{
    memset(d->long_chain.head, 0, sizeof d->long_chain.head);
    memset(d->short_chain.head, 0, sizeof d->short_chain.head);
    for (uint32_t i = FIRST; i < min_u32(p->at, p->last); i++)
        deep_insert(d, p->in, i);
    for (uint32_t end = (p->at / SEGMENT + 1) * SEGMENT; p->at < p->last; end += SEGMENT) {
        parse_deep(d, p, min_u32(end, p->last), t);
        put_mark(d);
    }
}

static void parse_older(struct deflate_parse *d, struct parse *p, const struct tuning *t) { parse_segments(d, p, t); }
NEWER static void parse_newer(struct deflate_parse *d, struct parse *p, const struct tuning *t)
{
    parse_segments(d, p, t);
}

void deflate_deep(struct deflate_parse *d, struct parse *p, bool newer, const struct tuning *t)
{
    (newer ? parse_newer : parse_older)(d, p, t);
}
