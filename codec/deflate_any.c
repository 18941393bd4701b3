/* SPDX-License-Identifier: MIT */
/* -l 1, any bytes: data that are not records, and blocks whose fields do not help enough.
 *
 * A table of single positions is a third faster than one of pairs, and good enough where matches are many. Where the
 * first bytes leave many literals, the rest is matched by pairs: the last two positions with the same hash of four
 * bytes. The longer of their two matches is taken, unless one that begins a byte later is longer still. */
#include "codec/deflate_greedy.h"

enum {
    ANY_BITS = 14,                /* 32 KiB of single positions, 64 KiB of pairs; 15 are 3 % slower, 0.2 % smaller */
    TRIAL_SEGMENTS = 2,
    /* Literals are many if one byte in this many is one. With 4, low coverage is 1.035 of libdeflate's level 1. With 3,
     * such kinds are a tenth faster, bisulfite is 1.037, and OQ is 1.07. */
    MANY_LITERALS = 5,
    /* Pairs keep one in this many positions of a match; 4 is 4 % faster, 0.4 % larger. They keep all positions of a
     * long match: copies of complete records would be 5 % larger otherwise. */
    PAIR_STRIDE = 3, PAIR_LONG = 128,
    PAIR_SKIP = 7,                /* steps grow by 1 per 128 literals in a row */
    LONG_MATCHES = 64,            /* mean length in copies of records: by single positions up to 1.3 times as large */
};
_Static_assert(sizeof ((struct deflate_parse *)0)->fast_head >= 4 << ANY_BITS, "two positions of two bytes each");
_Static_assert(STRIDE * INSERT <= FIRST, "insert_matched() does not go below 0");

/* ---- pairs ---- */

struct pairs {
    uint8_t *head;                /* 4 << bits bytes: two positions of 16 bits each, the newer in the lower bits */
    uint32_t bits;
};

/* Puts a position into its slot. Returns the slot's former content. */
INLINE uint32_t pairs_insert(const struct pairs *t, const uint8_t *in, uint32_t at)
{
    uint8_t *slot = t->head + 4 * hash(load_le32(in + at), HASH_FACTOR(4), t->bits);
    uint32_t old = load_le32(slot);
    store_le32(slot, old << 16 | at);
    return old;
}

/* Returns the length of a match, up to AGREE, << 16 | the candidate; 0 beyond the window. */
INLINE uint32_t rate_match(const uint8_t *in, uint32_t at, uint32_t cand)
{
    uint32_t score = agree16(in + at, in + cand) << 16 | cand;
    return score & (uint32_t)((int32_t)(at - cand - (MAX_DIST + 1)) >> 31);
}

INLINE uint32_t rate_pair(const uint8_t *in, uint32_t at, uint32_t pair)
{
    return max_u32(rate_match(in, at, pair & 0xffff), rate_match(in, at, pair >> 16));
}

INLINE bool is_pair_match(uint32_t score) { return score >> 16 >= MIN_MATCH && (score & 0xffff) >= FIRST_CAND; }

/* Returns whether the first four bytes differ from those of both candidates. There is one branch for both. */
INLINE bool pair_differs(const uint8_t *in, uint32_t at, uint32_t pair)
{
    uint32_t here = load_le32(in + at), differ = load_le32(in + (pair & 0xffff)) != here;
    return differ & (load_le32(in + (pair >> 16)) != here);
}

/* Puts the match and inserts its positions from `next` on. */
INLINE void put_pair_match(struct deflate_parse *d, struct parse *p, uint32_t at, uint32_t score, uint32_t next,
                           const struct pairs *t)
{
    uint32_t len = score >> 16, cand = score & 0xffff;
    if (len == AGREE)
        len = extend(p->in + at, p->in + cand, AGREE, min_u32(p->n - at, MAX_MATCH));
    put_match(d, p, at, cand, len);
    uint32_t end = min_u32(p->at, p->last), stride = len < PAIR_LONG ? PAIR_STRIDE : 1;
    for (; next < end; next += stride)
        pairs_insert(t, p->in, next);
}

/* Puts the matches that begin before stop. */
INLINE void parse_pairs(struct deflate_parse *d, struct parse *state, uint32_t stop, const struct pairs *t)
{
    struct parse p = *state;
    while (p.at < stop) {
        uint32_t at = p.at, next = at + 1, pair = pairs_insert(t, p.in, at), best = 0;
        bool differs = pair_differs(p.in, at, pair);
        if (differs || !is_pair_match(best = rate_pair(p.in, at, pair))) {
            p.at += 1 + ((at - p.anchor) >> PAIR_SKIP);
            continue;
        }
        if (best >> 16 < AGREE) {
            uint32_t later = rate_pair(p.in, next, pairs_insert(t, p.in, next));
            if (later >> 16 > best >> 16 && is_pair_match(later)) {
                best = later;
                at = next;
            }
            next++;
        }
        put_pair_match(d, &p, at, best, next, t);
    }
    *state = p;
}

/* ---- any bytes ---- */

/* Returns the first position that a match can refer to. */
INLINE uint32_t first_known(const struct parse *p) { return max_u32(p->at, MAX_DIST) - MAX_DIST; }

/* Parses by single positions up to the end of the block, or of this many segments. */
INLINE void parse_singly(struct deflate_parse *d, struct parse *p, const struct greedy *g, uint32_t segments)
{
    uint32_t end = (p->at / SEGMENT + 1) * SEGMENT;
    for (; p->at < p->last && segments > 0; end += SEGMENT, segments--) {
        parse_greedy(d, p, min_u32(end, p->last), g);
        put_mark(d);
    }
}

INLINE void parse_in_pairs(struct deflate_parse *d, struct parse *p)
{
    const struct pairs t = {d->fast_head, ANY_BITS};
    memset(t.head, 0, 4 << ANY_BITS);
    for (uint32_t at = first_known(p); at < p->at; at++)
        pairs_insert(&t, p->in, at);
    for (uint32_t end = (p->at / SEGMENT + 1) * SEGMENT; p->at < p->last; end += SEGMENT) {
        parse_pairs(d, p, min_u32(end, p->last), &t);
        put_mark(d);
    }
}

/* Returns whether the trial shows hardly anything but copies, the newest of which is not the longest. Most literals of
 * the block are in the trial then, so it is undone, to be done again. */
INLINE bool begin_copies(struct deflate_parse *d, struct parse *p, const struct parse *from, struct mark mark)
{
    uint32_t lits = d->n_lits - mark.lit, seqs = d->n_seqs - mark.seq;
    if (p->anchor - from->anchor - lits < seqs * LONG_MATCHES)
        return false;
    *p = *from;
    d->n_lits = mark.lit;
    d->n_seqs = mark.seq;
    d->n_segments -= TRIAL_SEGMENTS;
    return true;
}

INLINE void parse_any(struct deflate_parse *d, struct parse *p)
{
    const struct greedy g = {d->fast_head, HASH_FACTOR(6), ANY_BITS, false};
    const struct parse from = *p;
    const struct mark mark = {d->n_seqs, d->n_lits};
    memset(g.head, 0, 2 << ANY_BITS);
    for (uint32_t at = first_known(p); at < p->at; at++)
        greedy_insert(&g, p->in, at);
    parse_singly(d, p, &g, TRIAL_SEGMENTS);
    if (p->at >= p->last)
        return;
    if ((d->n_lits - mark.lit) * MANY_LITERALS > p->anchor - from.anchor || begin_copies(d, p, &from, mark))
        parse_in_pairs(d, p);
    else
        parse_singly(d, p, &g, MAX_SEGMENTS);
}

static void parse_older(struct deflate_parse *d, struct parse *p) { parse_any(d, p); }
NEWER_AVX2 static void parse_newer(struct deflate_parse *d, struct parse *p) { parse_any(d, p); }

void deflate_any(struct deflate_parse *d, struct parse *p, bool newer) { (newer ? parse_newer : parse_older)(d, p); }
