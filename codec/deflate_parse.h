/* SPDX-License-Identifier: MIT */
/* Inside the encoder: the output of its parsers, and what they share.
 *
 * Positions fit 16 bits. The tables of positions start as zeros: position 0 is as good a candidate as any, since every
 * candidate's bytes are compared. Mispredicted branches and the chain from one match to the next cost time, not the
 * number of bytes; so the code has many short stretches without branches. */
#ifndef DEFLATE_PARSE_H
#define DEFLATE_PARSE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif
#include "base/endian_io.h"
#include "codec/deflate_tables.h"
#include "codec/huffman.h"
#include "codec/newer.h"

enum {
    PARSE_MAX = 65535,            /* bytes of a block at most */
    /* RFC 1951 section 3.2.5 */
    MAX_MATCH = HUFFMAN_MAX_LEN,
    MAX_DIST = 32768,
    /* 3 are allowed, but matches of 3 bytes rarely cost less than their literals. */
    MIN_MATCH = 4,

    /* Bytes after every position where a match may begin: a parser loads up to 16 bytes
     * from any of four positions, and literals are copied 16 bytes at a time. */
    MARGIN = 32,
    /* The first position that is looked at: the eight bytes before it can be loaded. */
    FIRST = 24,

    /* The tables of the lazy search hold the last four positions with the same 8 bytes, and the last two with the same
     * 4; 64 KiB each. */
    LONG_BYTES = 8,
    LONG_BITS = 13,
    LONG_WAYS = 4,
    SHORT_BYTES = 4,
    SHORT_BITS = 14,
    SHORT_WAYS = 2,

    /* The tables of -l 1. Singles, for QUAL and OQ: 64 KiB of the last position with the same 4 bytes, or 16 KiB with
     * the same 5. Pairs, for the rest, and for long reads at both levels: 16 KiB of the last two with the same 5.
     * 16 KiB stay in the first-level cache. 13 bits for pairs are 0.08 % smaller, NovaSeq 2 % slower. */
    SINGLE_BITS = 15,
    PAIR_BITS = 12,

    /* A DEFLATE block may end between segments. Most segments have this many bytes; those of long reads have 512 and
     * more. */
    SEGMENT = 4096,
    MAX_SEGMENTS = PARSE_MAX / 512 + 2,

    /* Bits that a new block must save, by an estimate that sees classes only. A header takes some 500 bits; the classes
     * hide about half of what is saved. */
    SPLIT_BITS = 250,

    MAX_SEQS = PARSE_MAX / MIN_MATCH + MAX_SEGMENTS,
};
_Static_assert(PARSE_MAX <= UINT16_MAX, "positions and counts are 16 bits");
_Static_assert(MARGIN >= 16 + 2, "loads stay inside the input");
_Static_assert(FIRST >= 8 && LONG_BYTES == 8, "extend_back() loads 8 bytes; find_long() compares 8");

/* Literals, then a match. The last sequence, and those that end where a segment does, have no match (len 0). */
struct seq {
    uint16_t lits;
    uint16_t len;
    uint16_t dist_rest;           /* the value of the distance's extra bits */
    uint8_t len_sym;              /* the length's symbol, minus 256 */
    uint8_t dist_sym;
};

/* The first sequence and the first literal of a segment. */
struct mark {
    uint32_t seq, lit;
};

struct deflate_parse {
    union {
        struct {
            uint16_t single_head[2][1 << SINGLE_BITS];
            uint32_t pair_head[1 << PAIR_BITS];
        };
        struct {
            uint64_t long_head[1 << LONG_BITS];      /* LONG_WAYS, the newest lowest */
            uint32_t short_head[1 << SHORT_BITS];    /* SHORT_WAYS */
        };
        struct lanes lanes;
    };
    uint32_t n_seqs, n_lits, n_segments;
    struct seq seq[MAX_SEQS];
    uint8_t lit[PARSE_MAX + 16];               /* copied 16 bytes at a time */
    struct mark mark[MAX_SEGMENTS + 1];
    uint16_t lit_freq[MAX_SEGMENTS][256];      /* how often each literal comes in a segment */
};
_Static_assert(LONG_WAYS * 16 == 64 && SHORT_WAYS * 16 == 32, "positions fill a word");

/* The state of a parser. */
struct parse {
    const uint8_t *in;
    uint32_t n;
    uint32_t last;                /* no match begins here or later */
    uint32_t at;                  /* the next position to look at */
    uint32_t anchor;              /* the first byte that is not in a sequence yet */
    uint32_t dist;                /* distance of the last match */
};

/* deflate_fast() is -l 1; deflate_lanes() is the default level, for any bytes. Both go from p->at to p->last and put
 * the matches that they find. At the end, the bytes from p->anchor on have become neither sequence nor literal yet.
 * newer: the CPU has what NEWER_AVX2 names. */
void deflate_fast(struct deflate_parse *d, struct parse *p, bool newer);
void deflate_lanes(struct deflate_parse *d, struct parse *p, bool newer);
/* deflate_fields() is the default level by the fields of records; deflate_long() is for long reads, at -l 1 (fast) or
 * the default level. They return false, and have done nothing, where the block does not suit them. */
bool deflate_fields(struct deflate_parse *d, struct parse *p, bool newer);
bool deflate_long(struct deflate_parse *d, struct parse *p, bool newer, bool fast);

static inline uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }
static inline uint32_t max_u32(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* Returns 256 log2(v). The curve between powers of two is a parabola. */
static inline uint32_t log2_256(uint32_t v)
{
    uint32_t e = log2_floor(v), m = (v << 8 >> e) & 255;
    return 256 * e + m + (88 * m * (256 - m) >> 16);
}

/* In a product with this factor, the highest bits depend on the first `bytes` bytes only.
 * The odd number is 2^64 over the golden ratio. */
#define HASH_FACTOR(bytes) (0x9e3779b97f4a7c15u << (64 - 8 * (bytes)))

static inline uint32_t hash(uint64_t v, uint64_t factor, uint32_t bits)
{
    return (uint32_t)(v * factor >> (64 - bits));
}

/* Returns how many of 16 bytes agree before the first that does not. */
static inline uint32_t agree16(const uint8_t *a, const uint8_t *b)
{
#ifdef __SSE2__
    __m128i same = _mm_cmpeq_epi8(_mm_loadu_si128((const void *)a), _mm_loadu_si128((const void *)b));
    return (uint32_t)__builtin_ctz(~(uint32_t)_mm_movemask_epi8(same));
#else
    uint64_t x = load_le64(a) ^ load_le64(b), y = load_le64(a + 8) ^ load_le64(b + 8);
    uint32_t far = y ? 8 + (uint32_t)__builtin_ctzll(y) / 8 : 16;
    return x ? (uint32_t)__builtin_ctzll(x) / 8 : far;
#endif
}

/* Returns how many bytes of a and b agree, up to limit, given that the first len bytes do. */
static inline uint32_t extend(const uint8_t *a, const uint8_t *b, uint32_t len, uint32_t limit)
{
    while (len + 16 <= limit) {
        uint32_t k = agree16(a + len, b + len);
        len += k;
        if (k < 16)
            return len;
    }
    while (len < limit && a[len] == b[len])
        len++;
    return len;
}

/* Returns how many bytes before a and b agree, up to 7. */
INLINE uint32_t extend_back(const uint8_t *a, const uint8_t *b)
{
    uint64_t x = load_le64(a - 8) ^ load_le64(b - 8);
    return (uint32_t)__builtin_clzll(x | 1) / 8;
}

INLINE void put_literals(struct deflate_parse *d, const uint8_t *in, uint32_t n)
{
    uint8_t *to = d->lit + d->n_lits;
    d->n_lits += n;
    memcpy(to, in, 16);
    for (uint32_t i = 16; i < n; i += 16)
        memcpy(to + i, in + i, 16);
}

/* The symbols of lengths, minus 256. */
static const uint8_t len_symbols[MAX_MATCH + 1] = {
    [3] = 1, [4] = 2, [5] = 3, [6] = 4, [7] = 5, [8] = 6, [9] = 7, [10] = 8, [11 ... 12] = 9, [13 ... 14] = 10,
    [15 ... 16] = 11, [17 ... 18] = 12, [19 ... 22] = 13, [23 ... 26] = 14, [27 ... 30] = 15, [31 ... 34] = 16,
    [35 ... 42] = 17, [43 ... 50] = 18, [51 ... 58] = 19, [59 ... 66] = 20, [67 ... 82] = 21, [83 ... 98] = 22,
    [99 ... 114] = 23, [115 ... 130] = 24, [131 ... 162] = 25, [163 ... 194] = 26, [195 ... 226] = 27,
    [227 ... 257] = 28, [258] = 29,
};

/* Puts the bytes before `at` that are in no sequence yet as literals, and a match at `at`. */
INLINE void put_match(struct deflate_parse *d, struct parse *p, uint32_t at, uint32_t len, uint32_t dist)
{
    struct seq *s = &d->seq[d->n_seqs++];
    uint32_t lits = at - p->anchor;
    s->lits = (uint16_t)lits;
    s->len = (uint16_t)len;
    s->dist_rest = (uint16_t)((dist - 1) & ((1u << dist_extra_bits(dist)) - 1));
    s->len_sym = len_symbols[len];
    s->dist_sym = (uint8_t)dist_symbol(dist);
    put_literals(d, p->in + p->anchor, lits);
    p->anchor = at + len;
}

/* Puts a match at `at`, extended over the bytes before it that agree, and moves p to its end. */
INLINE void put_extended(struct deflate_parse *d, struct parse *p, uint32_t at, uint32_t cand, uint32_t len)
{
    uint32_t back = extend_back(p->in + at, p->in + cand);
    back = min_u32(back, min_u32(at - p->anchor, MAX_MATCH - len));
    put_match(d, p, at - back, len + back, at - cand);
    p->at = p->anchor;
    p->dist = at - cand;
}

/* Puts the bytes before `to` that are in no sequence yet as literals without a match. */
static inline void put_rest(struct deflate_parse *d, struct parse *p, uint32_t to)
{
    uint32_t n = to - p->anchor;
    d->seq[d->n_seqs++] = (struct seq){.lits = (uint16_t)n};
    memcpy(d->lit + d->n_lits, p->in + p->anchor, n);
    d->n_lits += n;
    p->anchor = to;
}

/* Sets the parser to the first position. Matches that were put before are dropped. */
static inline void begin_anew(struct deflate_parse *d, struct parse *p)
{
    d->n_seqs = d->n_lits = d->n_segments = p->anchor = 0;
    p->at = FIRST;
}

/* Ends the segment, and counts its literals. There are two tables, since in one table equal neighbours would wait for
 * each other's counter. */
static inline void put_mark(struct deflate_parse *d)
{
    uint16_t freq[2][256] = {0};
    uint32_t g = d->n_segments++, i = d->mark[g].lit;
    for (; i + 2 <= d->n_lits; i += 2) {
        freq[0][d->lit[i]]++;
        freq[1][d->lit[i + 1]]++;
    }
    if (i < d->n_lits)
        freq[0][d->lit[i]]++;
    for (i = 0; i < 256; i++)
        d->lit_freq[g][i] = (uint16_t)(freq[0][i] + freq[1][i]);
    d->mark[g + 1] = (struct mark){d->n_seqs, d->n_lits};
}

/* Returns how many of the *pairs pairs of bytes in a sample of in[n], one byte in `stride`, are equal. */
static inline uint32_t same_pairs(const uint8_t *in, uint32_t n, uint32_t stride, uint32_t *pairs)
{
    uint16_t count[256] = {0};
    uint32_t same = 0, samples = 0;
    for (uint32_t i = 0; i < n; i += stride, samples++)
        same += count[in[i]]++;
    *pairs = samples * (samples - 1) / 2;
    return same;
}

#endif
