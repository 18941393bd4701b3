/* SPDX-License-Identifier: MIT */
/* Inside the encoder, default level: qualities of many levels, which have many short matches and few long ones. Each
 * position looks for one. A pass from the last position to the first finds what costs least to the end of the read.
 * Neither has a branch that depends on the bytes. */
#ifndef DEFLATE_NOISE_H
#define DEFLATE_NOISE_H

#include "codec/deflate_records.h"

enum {
    /* OQ: where two in so many differ from the one before, they do not come in runs. */
    OQ_NOISY_RATE = 5,
    /* In eighths of a bit. */
    NOISE_DIST_BIT = 8,
    NOISE_LITERAL_MAX = 56,
    NOISE_NEVER = 1 << 15,
    NOISE_NEWER = 4,              /* positions in a word of noise.last; noise.older has the older ones */
};
_Static_assert((int)NOISE_LEN <= (int)MARGIN, "agree16() stays inside the input");
_Static_assert((int)NOISE_NEVER > ((int)NOISE_PIECE + 1) * (int)NOISE_LITERAL_MAX, "literals cost less than no match");
_Static_assert(NOISE_PIECE % 64 == 0, "pieces are whole words of noise.taken");

/* doc/tried.md says what other numbers cost. */
struct noise_effort {
    uint32_t depth;               /* so many of the last positions with the same four bytes are looked at: 2, 4 or 8 */
    uint32_t literal;             /* what one costs, in eighths of a bit: by its value it is no better */
};
static const struct noise_effort noise_usual = {.depth = 4, .literal = NOISE_LITERAL_MAX};

/* At the beginning of a block. */
INLINE void noise_begin(struct noise *q) { memset(q->last, 0, sizeof q->last); }

/* Before more than NOISE_NEWER positions are looked at. */
INLINE void noise_deepen(struct noise *q) { memset(q->older, 0, sizeof q->older); }

/* Length << 16 | candidate; 0 beyond the window. */
INLINE uint32_t noise_score(const uint8_t *in, uint32_t at, uint32_t cand)
{
    uint32_t score = agree16(in + at, in + cand) << 16 | cand;
    return score & (uint32_t)((int32_t)(at - cand - (MAX_DIST + 1)) >> 31);
}

INLINE uint32_t noise_best(const uint8_t *in, uint32_t at, uint64_t cands, uint32_t n)
{
    uint32_t best = 0;
    UNROLL(4)
    for (uint32_t k = 0; k < n; k++)
        best = max_u32(best, noise_score(in, at, cands >> 16 * k & 0xffff));
    return best;
}

INLINE void noise_find(struct noise *q, const uint8_t *in, uint32_t from, uint32_t n, uint32_t depth)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = from + i, h = hash(load_le64(in + at), HASH_FACTOR(SHORT_BYTES), NOISE_BITS);
        uint64_t old = q->last[h];
        q->last[h] = old << 16 | at;
        q->found[i] = noise_best(in, at, old, min_u32(depth, NOISE_NEWER));
        if (depth > NOISE_NEWER) {
            uint64_t older = q->older[h];
            q->older[h] = older << 16 | old >> 48;
            q->found[i] = max_u32(q->found[i], noise_best(in, at, older, depth - NOISE_NEWER));
        }
    }
}

/* Lengths cost what their symbol and extra bits do, and the symbol of the distance. */
INLINE void noise_costs(struct noise *q, uint32_t from, uint32_t n, uint32_t literal_cost)
{
    static const uint16_t len_cost[NOISE_LEN + 1] = {
        NOISE_NEVER, NOISE_NEVER, NOISE_NEVER, NOISE_NEVER, 36, 36, 40, 44, 48, 52, 56, 60, 60, 60, 60, 64, 64,
    };
    memset(q->cost + n, 0, (NOISE_LEN + 1) * sizeof *q->cost);
    for (uint32_t end = n, begin; end > 0; end = begin) {
        uint64_t taken = 0;
        begin = (end - 1) / 64 * 64;
        for (uint32_t i = end; i-- > begin;) {
            uint32_t len = q->found[i] >> 16, dist = from + i - (q->found[i] & 0xffff);
            uint32_t literal = q->cost[i + 1] + literal_cost;
            uint32_t match = q->cost[i + max_u32(len, 1)] + len_cost[len] + NOISE_DIST_BIT * log2_floor(dist);
            q->cost[i] = min_u32(literal, match);
            taken = taken << 1 | (match < literal);
        }
        q->taken[begin / 64] = taken;
    }
}

INLINE void noise_put(const struct noise *q, struct deflate_parse *d, struct parse *p, uint32_t from, uint32_t n)
{
    for (uint32_t i = 0; i < n;) {
        uint64_t taken = q->taken[i / 64] >> i % 64;
        if (taken == 0) {
            i = (i / 64 + 1) * 64;
            continue;
        }
        i += (uint32_t)__builtin_ctzll(taken);
        uint32_t at = from + i, cand = q->found[i] & 0xffff, len = q->found[i] >> 16;
        if (len == NOISE_LEN)
            len = extend(p->in + at, p->in + cand, len, min_u32(p->n - at, MAX_MATCH));
        put_seq(d, p->in + p->anchor, at - p->anchor, len, at - cand);
        p->anchor = at + len;
        p->dist = at - cand;
        i += len;
    }
}

/* [from, to), but for what is matched there already. */
INLINE void match_noise(struct deflate_parse *d, struct parse *p, uint32_t from, uint32_t to, struct noise_effort e)
{
    struct noise *q = &d->noise;
    to = min_u32(to, p->last);
    for (uint32_t n; (from = max_u32(from, p->anchor)) < to; from += n) {
        n = min_u32(to - from, NOISE_PIECE);
        if (e.depth == 2)
            noise_find(q, p->in, from, n, 2);
        else if (e.depth == 4)
            noise_find(q, p->in, from, n, 4);
        else
            noise_find(q, p->in, from, n, 8);
        noise_costs(q, from, n, e.literal);
        noise_put(q, d, p, from, n);
    }
}

/* ---- OQ ---- */

/* Qualities in OQ, as they were before they were recalibrated. If they do not come in runs, their literals say nothing
 * of a block. */
enum oq {
    OQ_ANY,                                        /* none, or in runs: as other tags */
    OQ_NOISY,                                      /* few levels, or large steps from one to the next (HiSeq) */
    OQ_IN_STEPS,                                   /* many levels, small steps: matched on their own */
};

/* Where the text of OQ begins (SAM tags, section 1.1); the end, if there is none that is as long as the read. */
INLINE uint32_t find_oq(const struct parse *p, const struct fields *f)
{
    const uint8_t *oq = memmem(p->in + f->tags, f->end - f->tags, "OQZ", 3);
    uint32_t from = oq ? (uint32_t)(oq - p->in) + 3 : f->end, quals = f->tags - f->qual;
    return from < f->end && quals < f->end - from && p->in[from + quals] == 0 ? from : f->end;
}

INLINE uint32_t oq_end(const struct fields *f, uint32_t oq) { return min_u32(oq + f->tags - f->qual, f->end); }

INLINE void count_oq_steps(const struct parse *p, const struct fields *f, struct steps *s)
{
    uint32_t from = find_oq(p, f);
    count_steps(p, from, oq_end(f, from), s);
}

INLINE enum oq oq_of(const struct steps *s)
{
    if (s->all == 0 || s->differ * OQ_NOISY_RATE < s->all * 2)
        return OQ_ANY;
    return are_steps_small(s) ? OQ_IN_STEPS : OQ_NOISY;
}

#endif
