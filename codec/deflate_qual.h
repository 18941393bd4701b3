/* SPDX-License-Identifier: MIT */
/* Inside the encoder, default level: qualities of few levels.
 *
 *   FFFFFFFF:FFFFFFFFFFF,FFFF#    a run begins: an event. e = 0 .. n - 1; event n is the end
 *   0       12          34   5
 *
 * Every event looks for the same run between the same neighbours in the qualities before it. Its match begins with the
 * run, or before it if bytes agree there. A pass from the last event to the first finds the cheapest way to the end:
 *
 *   x FFFFF:FFFFFFF     the rest of the run, as literals or as a match of distance 1, then event e + 1
 *   x=======......      the match of e, which continues after its run; x is e or after it
 *   x FF=======...      the beginning of the rest of the run, then the match of e + 1 with the bytes that agree before
 *                       it */
#ifndef DEFLATE_QUAL_H
#define DEFLATE_QUAL_H

#include "codec/deflate_records.h"

enum {
    QUAL_PIECE = 512,             /* qualities that are parsed at once */
    QUAL_BACK = 32,               /* a match begins at most this many qualities before an event */
    QUAL_KEYS = 3,                /* 2 instead of 3 are 0.1 % larger, 1 % faster */
    QUAL_BITS = 12,               /* bits of each table; 10 are 0.1 to 0.2 % larger */
    BIT = 8,                      /* costs are in eighths of a bit */
    LITERAL_COST = 6 * BIT,
    RUN_COST = 11 * BIT / 2,      /* the cost of distance 1 */
    TAG_COST = 10 * BIT,          /* the cost of the match that tags begin with; 6 or 14 bits are up to 0.15 % larger */
    NO_WAY = 1 << 20,
};
_Static_assert((int)QUAL_BACK <= (int)BAM_FIXED, "a candidate of no event can be loaded");

/* Costs of lengths 3, 4, 5 to 10, 11 to 18, 19 to 34, ...: symbol and extra bits. They are from the codes of real
 * blocks. */
static const uint8_t qual_len_cost[29] = {
    48, 40, 52, 52, 52, 52, 52, 52, 58, 58, 58, 58, 66, 66, 66, 66,
    80, 80, 80, 80, 96, 96, 96, 96, 112, 112, 112, 112, 80,
};

struct qual_costs {
    uint32_t match[MAX_MATCH + QUAL_BACK + 1];     /* by length */
    uint32_t run[2][QUAL_PIECE + 1];               /* rest of a run by length; [1]: from the run's beginning on */
};

static void qual_costs_make(struct qual_costs *c)
{
    for (uint32_t len = 0; len <= MAX_MATCH + QUAL_BACK; len++)
        c->match[len] = len < MIN_MATCH || len > MAX_MATCH ? (uint32_t)NO_WAY : qual_len_cost[len_symbol(len) - 257];
    c->run[0][0] = c->run[1][0] = 0;
    for (uint32_t len = 1; len <= QUAL_PIECE; len++) {
        c->run[0][len] = min_u32(len * LITERAL_COST, c->match[min_u32(len, MAX_MATCH)] + RUN_COST);
        c->run[1][len] = LITERAL_COST + c->run[0][len - 1];
    }
}

INLINE uint32_t qual_dist_cost(uint32_t dist)
{
    return 4 * BIT + BIT * max_u32(4, dist_extra_bits(dist));
}

/* The last two events with the same key (the event's run and the quality after it), the newer in the lower bits. The
 * next table is by two keys, those of the event and of the next event; the last one is by three. */
struct qual_tables {
    uint32_t keys[QUAL_KEYS][1 << QUAL_BITS];
};

/* The events of a piece. */
struct qual_events {
    uint32_t n;
    uint16_t at[QUAL_PIECE + 3];                   /* where the run begins */
    uint16_t len[QUAL_PIECE + 3], dist[QUAL_PIECE + 3], back[QUAL_PIECE + 3];  /* its match; bytes that agree before */
    uint32_t key[QUAL_PIECE + 3];                  /* the run and the quality after it */
    uint32_t cost[QUAL_PIECE + 3];                 /* from here to the end */
    uint32_t match_cost[QUAL_PIECE + 3];           /* cost of the match without its length, and from there to the end */
    uint64_t begins[QUAL_PIECE / 64 + 1];          /* bit i of all words: an event at at[0] + i */
    uint16_t before[QUAL_PIECE / 64 + 1];          /* the events before those of a word */
};

INLINE void qual_find_events(struct qual_events *q, const struct parse *p, uint32_t from, uint32_t to,
                             agree64_fn *agree)
{
    uint32_t k = 1;
    q->at[0] = (uint16_t)from;
    for (uint32_t x = from, w = 0; x <= to; x += 64, w++) {
        uint64_t new = 0;
        if (x + 64 <= p->n)
            new = ~agree(p->in + x, p->in + x - 1);
        else
            for (uint32_t i = 0; x + i < to; i++)
                new |= (uint64_t)(p->in[x + i] != p->in[x + i - 1]) << i;
        if (to - x < 64)
            new = (new & below(to - x)) | 1ull << (to - x);
        q->begins[w] = w ? new : new | 1;
        q->before[w] = (uint16_t)(w ? k : 0);
        for (new &= w ? UINT64_MAX : ~1ull; new; new &= new - 1)
            q->at[k++] = (uint16_t)(x + (uint32_t)__builtin_ctzll(new));
    }
    q->n = k - 1;
    q->at[k] = q->at[k + 1] = (uint16_t)to;
    for (uint32_t e = 0; e < q->n; e++)
        q->key[e] = (uint32_t)(q->at[e + 1] - q->at[e]) << 16 | (uint32_t)p->in[q->at[e]] << 8
                    | p->in[min_u32(q->at[e + 1], p->n - 1)];
    q->key[q->n] = q->key[q->n + 1] = 0;
}

/* Returns how many bytes of x and a candidate agree, up to WINDOW, << 16 | the candidate; 0 beyond the window. */
INLINE uint32_t qual_score(const struct parse *p, uint32_t x, uint32_t cand, agree64_fn *agree)
{
    cand = max_u32(cand, QUAL_BACK);
    uint32_t len = (uint32_t)__builtin_ctzll(~agree(p->in + x, p->in + cand) | 1ull << WINDOW);
    return (len << 16 | cand) & (uint32_t)((int32_t)(x - cand - (MAX_DIST + 1)) >> 31);
}

/* Returns the longest match that event e finds in the tables, and puts e into them. */
INLINE uint32_t qual_best(const struct parse *p, const struct qual_events *q, uint32_t e, struct qual_tables *t,
                          agree64_fn *agree)
{
    uint32_t best = 0, mixed = 0;
    UNROLL(3)
    for (uint32_t k = 0; k < QUAL_KEYS; k++) {
        mixed = (mixed ^ q->key[e + k]) * 0x9e3779b1u;
        uint32_t *slot = &t->keys[k][mixed >> (32 - QUAL_BITS)], old = *slot;
        *slot = old << 16 | q->at[e];
        best = max_u32(best, max_u32(qual_score(p, q->at[e], old & 0xffff, agree),
                                     qual_score(p, q->at[e], old >> 16, agree)));
    }
    return best;
}

INLINE void qual_find_matches(struct qual_events *q, const struct parse *p, struct qual_tables *t, agree64_fn *agree)
{
    uint32_t e = 0;
    for (; e < q->n && q->at[e] + 64u <= p->n; e++) {
        uint32_t x = q->at[e], best = qual_best(p, q, e, t, agree);
        uint32_t cand = max_u32(best & 0xffff, QUAL_BACK), len = best >> 16, limit = min_u32(p->n - x, MAX_MATCH);
        if (len == WINDOW)
            len = extend(p->in + x, p->in + cand, len, limit);
        len = min_u32(len, limit);
        uint64_t differ = ~agree(p->in + x - QUAL_BACK, p->in + cand - QUAL_BACK) << QUAL_BACK;
        q->back[e] = (uint16_t)__builtin_clzll(differ | 1ull << (63 - QUAL_BACK));
        q->len[e] = (uint16_t)len;
        q->dist[e] = (uint16_t)(x - cand);
        q->match_cost[e] = len >= (uint32_t)(q->at[e + 1] - q->at[e]) ? qual_dist_cost(x - cand) : (uint32_t)NO_WAY;
    }
    for (; e < q->n + 2; e++) {
        q->len[e] = q->back[e] = 0;
        q->match_cost[e] = NO_WAY;
    }
}

/* The place of a position x: in the run of event e, r bytes before its end. begin: x is the run's beginning. */
struct qual_place {
    uint32_t e, r;
    bool begin;
};

INLINE struct qual_place qual_find(const struct qual_events *q, uint32_t x)
{
    uint32_t i = x - q->at[0];
    uint64_t begins = q->begins[i / 64] << (63 - i % 64);
    uint32_t e = q->before[i / 64] + (uint32_t)__builtin_popcountll(begins) - 1;
    return (struct qual_place){e, (uint32_t)(q->at[e + 1] - x), begins >> 63};
}

/* The three ways from a place to the end. */
struct qual_ways {
    uint32_t run, match, next;                     /* costs */
    uint32_t match_len, next_len, first;           /* first: bytes of the run before the match of e + 1 */
};

INLINE struct qual_ways qual_ways(const struct qual_events *q, const struct qual_costs *c, struct qual_place at)
{
    uint32_t e = at.e, past = (uint32_t)(q->at[e + 1] - q->at[e]) - at.r, back = min_u32(q->back[e + 1], at.r);
    struct qual_ways w = {.match_len = q->len[e] - past, .next_len = q->len[e + 1] + back, .first = at.r - back};
    w.run = c->run[at.begin][at.r] + q->cost[e + 1];
    w.match = c->match[min_u32(w.match_len, MAX_MATCH + 1)] + q->match_cost[e];
    w.next = c->run[at.begin][w.first] + c->match[w.next_len] + q->match_cost[e + 1];
    return w;
}

INLINE uint32_t qual_cost(const struct qual_events *q, const struct qual_costs *c, struct qual_place at)
{
    struct qual_ways w = qual_ways(q, c, at);
    return min_u32(w.run, min_u32(w.match, w.next));
}

/* Finds the costs of all events. The bytes after the piece cost `behind` more where no match continues into them. */
INLINE void qual_find_costs(struct qual_events *q, const struct qual_costs *c, uint32_t behind)
{
    q->cost[q->n] = q->cost[q->n + 1] = behind;
    for (uint32_t e = q->n; e-- > 0;) {
        /* A match that ends inside its own run is not used, so any place will do. */
        uint32_t end = min_u32(q->at[q->n], max_u32(q->at[e + 1], (uint32_t)q->at[e] + q->len[e]));
        q->match_cost[e] += qual_cost(q, c, qual_find(q, end));
        if ((uint32_t)q->at[e] + q->len[e] >= (uint32_t)q->at[q->n] + MIN_MATCH)
            q->match_cost[e] -= behind;
        q->cost[e] = qual_cost(q, c, (struct qual_place){e, (uint32_t)(q->at[e + 1] - q->at[e]), true});
    }
}

/* Puts n qualities of a run, as literals or as matches of distance 1: the cheaper way, whose cost is in c->run. The
 * bytes after p->anchor at the end become literals. */
INLINE void qual_put_run(struct deflate_parse *d, struct parse *p, const struct qual_costs *c, uint32_t x, uint32_t n,
                         bool begin)
{
    x += begin;
    n -= begin;
    for (uint32_t len; c->run[0][n] < n * LITERAL_COST && x < p->last; n -= len, x += len) {
        len = min_u32(n, MAX_MATCH);
        put_match(d, p, x, len, 1);
    }
}

INLINE void qual_put(struct deflate_parse *d, struct parse *p, const struct qual_events *q, const struct qual_costs *c)
{
    for (uint32_t x = q->at[0], end = min_u32(q->at[q->n], p->last); x < end;) {
        struct qual_place at = qual_find(q, x);
        struct qual_ways w = qual_ways(q, c, at);
        if (w.match < w.run && w.match <= w.next) {
            put_match(d, p, x, w.match_len, q->dist[at.e]);
            x += w.match_len;
            continue;
        }
        uint32_t first = w.next < w.run ? w.first : at.r;
        if (first > 0)
            qual_put_run(d, p, c, x, first, at.begin);
        x += first;
        if (w.next < w.run && x < end) {
            put_match(d, p, x, w.next_len, q->dist[at.e + 1]);
            x += w.next_len;
        }
    }
}

#endif
