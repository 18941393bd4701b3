/* SPDX-License-Identifier: MIT */
/* Inside the encoder, default level: qualities of many levels, which have many short matches and few long ones. Each
 * position looks for one. A pass from the last position to the first finds what costs least to the end of the read.
 * Neither has a branch that depends on the bytes. */
#ifndef DEFLATE_NOISE_H
#define DEFLATE_NOISE_H

#include "codec/deflate_records.h"

enum {
    /* In eighths of a bit. */
    NOISE_LITERAL = 40,           /* what one costs; by value they are no better */
    NOISE_DIST_BIT = 8,
    NOISE_NEVER = 1 << 15,
};
_Static_assert((int)NOISE_LEN <= (int)MARGIN, "agree16() stays inside the input");
_Static_assert((int)NOISE_NEVER > ((int)NOISE_PIECE + 1) * (int)NOISE_LITERAL, "literals cost less than no match");
_Static_assert(NOISE_PIECE % 64 == 0, "pieces are whole words of noise.taken");

/* How many of the last positions with the same four bytes are looked at. Four are 0.3 to 0.6 % smaller on QUAL of 40
 * levels, 15 to 20 % slower. */
enum noise_depth { NOISE_2, NOISE_4 };

/* At the beginning of a block. */
INLINE void noise_begin(struct noise *q, enum noise_depth depth)
{
    memset(q->last_4, 0, depth == NOISE_2 ? sizeof q->last_2 : sizeof q->last_4);
}

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

INLINE void noise_find(struct noise *q, const uint8_t *in, uint32_t from, uint32_t n, enum noise_depth depth)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = from + i, h = hash(load_le64(in + at), HASH_FACTOR(SHORT_BYTES), NOISE_BITS);
        if (depth == NOISE_2) {
            uint32_t old = q->last_2[h];
            q->last_2[h] = old << 16 | at;
            q->found[i] = noise_best(in, at, old, 2);
        } else {
            uint64_t old = q->last_4[h];
            q->last_4[h] = old << 16 | at;
            q->found[i] = noise_best(in, at, old, 4);
        }
    }
}

INLINE void noise_costs(struct noise *q, uint32_t from, uint32_t n)
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
            uint32_t literal = q->cost[i + 1] + NOISE_LITERAL;
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
INLINE void match_noise(struct deflate_parse *d, struct parse *p, uint32_t from, uint32_t to, enum noise_depth depth)
{
    struct noise *q = &d->noise;
    to = min_u32(to, p->last);
    for (uint32_t n; (from = max_u32(from, p->anchor)) < to; from += n) {
        n = min_u32(to - from, NOISE_PIECE);
        noise_find(q, p->in, from, n, depth);
        noise_costs(q, from, n);
        noise_put(q, d, p, from, n);
    }
}

#endif
