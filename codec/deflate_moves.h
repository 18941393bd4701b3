/* SPDX-License-Identifier: MIT */
/* Inside the encoder: moves of Nanopore reads (the tag mv), bytes that are 0 or 1. Each becomes a bit, so that one
 * comparison of words gives the length of a match. Matches follow each other greedily. A lazy search gains length, but
 * loses as much by its literals: without literals the codes of matches are short. */
#ifndef DEFLATE_MOVES_H
#define DEFLATE_MOVES_H

#include "codec/deflate_records.h"

enum {
    LEAST_MOVES = 512,            /* moves in a row that are matched as bits, at least */
    MOVES_KEY = 13,               /* bits at the beginning of a match; 64 KiB. 12 are 0.35 % larger, 14 are 0.1 % */
    MOVES_WORD = 56,              /* bits that one load gives at any position */
};

struct moves {
    bool begun;
    uint64_t head[1 << MOVES_KEY];                 /* last four positions with the same bits, newest lowest */
    uint8_t bits[PARSE_MAX / 8 + 1 + 2 * 8];       /* by position */
};

static const uint8_t moves_zeros[64] = {0}, moves_ones[64] = {[0 ... 63] = 1};

/* Returns which of the 64 bytes from x on are 0 or 1. Bytes after the input are neither. The input has at least 64
 * bytes. */
INLINE uint64_t are_moves(const struct parse *p, uint32_t x, agree64_fn *agree)
{
    uint32_t at = min_u32(x, p->n - 64);
    return (agree(p->in + at, moves_zeros) | agree(p->in + at, moves_ones)) >> (x - at);
}

/* Finds the next LEAST_MOVES or more moves in [x, to). Returns where they begin, and sets *end to where they end. If
 * there are none, both are `to`. */
INLINE uint32_t find_moves(const struct parse *p, uint32_t x, uint32_t to, uint32_t *end, agree64_fn *agree)
{
    while (x + LEAST_MOVES <= to) {
        uint32_t at = x + LEAST_MOVES;             /* [at, x + LEAST_MOVES) are moves */
        uint64_t others = 0;
        while (others == 0 && at > x)
            others = ~are_moves(p, at -= 64, agree);
        if (others) {
            x = at + 64 - (uint32_t)__builtin_clzll(others);
            continue;
        }
        for (at = x + LEAST_MOVES; at < to && (others = ~are_moves(p, at, agree)) == 0;)
            at += 64;
        *end = min_u32(to, others ? at + (uint32_t)__builtin_ctzll(others) : at);
        return x;
    }
    return *end = to;
}
_Static_assert(LEAST_MOVES % 64 == 0, "find_moves()");

INLINE uint32_t count_moves(const struct parse *p, uint32_t from, uint32_t to)
{
    uint32_t n = 0;
    for (uint32_t end; from < to; from = end) {
        uint32_t at = find_moves(p, from, to, &end, agree64);
        n += end - at;
    }
    return n;
}

INLINE uint64_t moves_bits(const struct moves *m, uint32_t x) { return load_le64(m->bits + x / 8) >> (x & 7); }
INLINE uint64_t *moves_slot(struct moves *m, uint64_t bits) { return &m->head[bits & ((1 << MOVES_KEY) - 1)]; }

/* Returns the length of the longest match of [x, end), and sets *cand to its place. Returns 0 if there is none. */
INLINE uint32_t find_match_of_moves(struct moves *m, const struct parse *p, uint32_t x, uint32_t end, uint32_t *cand)
{
    uint64_t here = moves_bits(m, x), cands = *moves_slot(m, here);
    uint32_t best = 0, limit = min_u32(end - x, MAX_MATCH), seen = min_u32(limit, MOVES_WORD);
    UNROLL(4)
    for (uint32_t k = 0; k < 4; k++) {             /* best: the length << 16 | its place */
        uint32_t there = cands >> 16 * k & 0xffff;
        uint32_t is_near = x - there - (MAX_DIST + 1), is_filled = 0 - there;     /* negative if true */
        uint64_t differ = (moves_bits(m, there) ^ here) | 1ull << seen;
        uint32_t score = (uint32_t)__builtin_ctzll(differ) << 16 | there;
        best = max_u32(best, score & (uint32_t)((int32_t)(is_near & is_filled) >> 31));
    }
    *cand = best & 0xffff;
    return best >> 16 < MOVES_WORD ? best >> 16 : extend(p->in + x, p->in + *cand, MOVES_WORD, limit);
}

INLINE void begin_moves(struct moves *m, const struct parse *p, uint32_t from, uint32_t to, agree64_fn *agree)
{
    if (!m->begun) {
        memset(m->head, 0, sizeof m->head);
        memset(m->bits, 0, 8);                     /* empty slots are compared with these */
    }
    m->begun = true;
    uint32_t x = from & ~63u;
    for (; x < to; x += 64) {
        uint32_t at = min_u32(x, p->n - 64);
        store_le64(m->bits + x / 8, agree(p->in + at, moves_ones) >> (x - at));
    }
    store_le64(m->bits + x / 8, 0);                /* bits that are loaded after the end */
}

/* Matches the moves [from, to), LEAST_MOVES or more. */
INLINE void match_moves(struct deflate_parse *d, struct parse *p, struct moves *m, uint32_t from, uint32_t to,
                        agree64_fn *agree)
{
    uint32_t x = max_u32(max_u32(from, p->anchor), 1), known = x, end = min_u32(to, p->last);
    begin_moves(m, p, from, to, agree);
    for (uint32_t cand; x < end;) {
        /* Only positions with enough moves after them become known: all bits of a candidate must be moves. */
        for (uint32_t until = min_u32(x, to - MOVES_WORD); known < until; known++) {
            uint64_t *slot = moves_slot(m, moves_bits(m, known));
            *slot = *slot << 16 | known;
        }
        uint32_t len = find_match_of_moves(m, p, x, to, &cand);
        if (len >= MIN_MATCH)
            put_match(d, p, x, len, x - cand);
        x += max_u32(len, 1);
    }
}

#endif
