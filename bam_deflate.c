/* SPDX-License-Identifier: MIT */
/* In the order of bam_deflate():
 *
 *   parse     in[n] -> literals, and sequences: so many literals, then a match
 *   blocks    where a new pair of Huffman codes pays: at which segments
 *   codes     per block: symbol counts -> two codes -> the block's header
 *   output    per block: literals and sequences -> bits
 *
 * Positions fit 16 bits, and the tables of positions start as zeros: position 0
 * is as good a candidate as any, since every candidate's bytes are compared.
 *
 * What costs time are mispredicted branches and the chain from one match to the
 * next, not the bytes; hence the many short branchless stretches. */
#include <stdbool.h>
#include <stdlib.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif
#ifdef __x86_64__
#include <cpuid.h>
#endif
#include "bam_deflate.h"
#include "endian_io.h"
#include "huffman.h"

/* The compilers' -O2 keeps loops of a few rounds as loops; that costs 7 %. */
#define PRAGMA(text) _Pragma(#text)
#ifdef __clang__
#define UNROLL(n) PRAGMA(unroll n)
#else
#define UNROLL(n) PRAGMA(GCC unroll n)
#endif

#define INLINE __attribute__((always_inline)) static inline

/* The parser and the output are compiled twice, the second time for processors of
 * 2013 and later: 4 % faster, the same bytes. With avx2 clang makes it slower. */
#ifdef __x86_64__
#define NEWER __attribute__((target("bmi,bmi2,lzcnt")))
static bool cpu_is_newer(void)
{
    unsigned a, b, c, d;
    return __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2")
        && __get_cpuid(0x80000001, &a, &b, &c, &d) && (c & bit_LZCNT);
}
#else
#define NEWER
static bool cpu_is_newer(void) { return false; }
#endif

enum {
    /* RFC 1951 section 3.2.5 */
    MAX_MATCH = HUFFMAN_MAX_LEN,
    MAX_DIST = 32768,
    END_OF_BLOCK = 256,
    STORED_HEADER = 5,            /* section 3.2.4, from a byte boundary */
    /* 15 are allowed. With 14, four literals fit the bit buffer at any time. */
    MAX_BITS = 14,
    MAX_EXTRA_LEN = 5,
    MAX_EXTRA_DIST = 13,
    /* 3 are allowed, but such rarely cost less than their literals. */
    MIN_MATCH = 4,

    /* Bytes after every position the parser looks at: it loads up to 16 from any
     * of four positions. */
    MARGIN = 32,
    /* The first position looked at: eight bytes before it can be loaded. */
    FIRST = 24,

    /* Fast: one table, 32 KiB. */
    FAST_HASH_BITS = 14,
    FAST_GROUP = 4,
    FAST_SKIP = 6,                /* steps grow by 1 per 64 literals in a row */
    FAST_INSERT = 3,              /* positions inside a match are inserted three at a time */
    FAST_MAX_STRIDE = 5,

    /* Default: the last eight positions with the same 8 bytes (sequence, names,
     * tags), the last two with the same 4; 128 and 64 KiB. Of the eight the older
     * four are worth 1.1 % on generated qualities of 4 levels and on 10x reads,
     * for 20 % of the speed; tuning.deep says where. */
    LONG_BYTES = 8,
    LONG_BITS = 13,
    LONG_WAYS = 4,                /* in each of two words, the newer first */
    SHORT_BYTES = 4,
    SHORT_BITS = 14,
    SHORT_WAYS = 2,
    SKIP = 8,                     /* steps grow by 1 per 256 literals in a row */
    NICE_LEN = 258,               /* no search for a better one; 128 is up to 0.06 % larger */
    /* What a match one or two bytes later must gain more, in quarter bytes. */
    BIAS_1 = 1,
    BIAS_2 = 7,

    SAMPLE_STRIDE = 127,

    /* A DEFLATE block may end between segments of so many bytes. */
    SEGMENT = 4096,
    MAX_SEGMENTS = BAM_DEFLATE_MAX / SEGMENT + 2,
    N_CLASSES = 33,               /* 32 of literals, one of matches */
    /* Bits that a new block must save by an estimate that sees classes only. A
     * header takes some 500; the classes hide about half of what is saved. */
    SPLIT_BITS = 250,

    MAX_SEQS = BAM_DEFLATE_MAX / MIN_MATCH + 2,
};
_Static_assert((int)BAM_DEFLATE_MAX <= (int)HUFFMAN_MAX_COUNT, "any count can be sorted");
_Static_assert(BAM_DEFLATE_MAX <= UINT16_MAX, "positions and counts are 16 bits");
_Static_assert(7 + 4 * MAX_BITS < 64, "four literals fit what flush() leaves");
_Static_assert(7 + 2 * MAX_BITS + MAX_EXTRA_LEN + MAX_EXTRA_DIST < 64, "so does a match");
_Static_assert(MARGIN >= FAST_GROUP - 1 + 16 && MARGIN >= 16 + 2, "loads stay inside the input");
_Static_assert(FAST_MAX_STRIDE * FAST_INSERT <= FIRST, "insert_matched() does not go below 0");
_Static_assert(FIRST >= 8 && LONG_BYTES == 8, "extend_back() loads 8 bytes; find_long() compares 8");

/* Literals, then a match; the last sequence has none (len 0). */
struct seq {
    uint16_t lits;
    uint16_t len;
    uint16_t dist;
    uint8_t len_sym;              /* less 256 */
    uint8_t dist_sym;
};

/* The first sequence and the first literal of a segment. */
struct mark {
    uint32_t seq, lit;
};

struct bam_deflate {
    int effort;
    bool newer;                   /* the CPU */
    /* parse */
    union {
        uint16_t fast_head[1 << FAST_HASH_BITS];
        struct {
            uint64_t long_head[2 << LONG_BITS];      /* LONG_WAYS positions, newest lowest */
            uint32_t short_head[1 << SHORT_BITS];    /* SHORT_WAYS */
        };
    };
    uint32_t n_seqs, n_lits, n_segments;
    struct seq seq[MAX_SEQS];
    uint8_t lit[BAM_DEFLATE_MAX + 16];               /* copied in whole 16 bytes */
    struct mark mark[MAX_SEGMENTS + 1];
    /* blocks */
    uint16_t lit_freq[MAX_SEGMENTS][256];
    /* codes of the present block */
    uint32_t litlen_freq[HUFFMAN_N_LITLEN];
    uint32_t dist_freq[HUFFMAN_N_DIST];
    code litlen[HUFFMAN_N_LITLEN];
    code dist[HUFFMAN_N_DIST];
    uint32_t match_bits[MAX_MATCH + 1];              /* length's code and extra bits */
    uint8_t match_len[MAX_MATCH + 1];
};
_Static_assert(sizeof(struct bam_deflate) <= 400 << 10, "one per thread, to stay in its L2 cache");
_Static_assert(LONG_WAYS * 16 == 64 && SHORT_WAYS * 16 == 32, "positions fill a word");

static inline uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }
static inline uint32_t max_u32(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* ---------------------------------------------------------------- matches */

/* Multiplied by this, the highest bits depend on so many first bytes only. The
 * odd number is 2^64 over the golden ratio. */
#define HASH_FACTOR(bytes) (0x9e3779b97f4a7c15u << (64 - 8 * (bytes)))

static inline uint32_t hash(uint64_t v, uint64_t factor, uint32_t bits)
{
    return (uint32_t)(v * factor >> (64 - bits));
}

/* How many of 16 bytes agree before the first that does not. */
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

/* How far a and b agree, given that they do for len bytes, up to limit. */
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

/* How many bytes before a and b agree, up to 7. */
static inline uint32_t extend_back(const uint8_t *a, const uint8_t *b)
{
    uint64_t x = load_le64(a - 8) ^ load_le64(b - 8);
    return (uint32_t)__builtin_clzll(x | 1) / 8;
}

static inline void put_literals(struct bam_deflate *d, const uint8_t *in, uint32_t n)
{
    uint8_t *to = d->lit + d->n_lits;
    d->n_lits += n;
    memcpy(to, in, 16);
    for (uint32_t i = 16; i < n; i += 16)
        memcpy(to + i, in + i, 16);
}

static inline void put_seq(struct bam_deflate *d, const uint8_t *in, uint32_t lits, uint32_t len, uint32_t dist)
{
    struct seq *s = &d->seq[d->n_seqs++];
    uint32_t len_sym = len_symbol(len), dist_sym = dist_symbol(dist);
    s->lits = (uint16_t)lits;
    s->len = (uint16_t)len;
    s->dist = (uint16_t)dist;
    s->len_sym = (uint8_t)(len_sym - 256);
    s->dist_sym = (uint8_t)dist_sym;
    put_literals(d, in, lits);
}

/* The state of a parser between segments. */
struct parse {
    const uint8_t *in;
    uint32_t n;
    uint32_t last;                /* positions from here on are not looked at */
    uint32_t at;                  /* next position to look at */
    uint32_t anchor;              /* first byte that is in no sequence yet */
};

/* Puts a match at `at`, and as much before it as agrees; moves on behind it. */
static inline void put_match(struct bam_deflate *d, struct parse *p, uint32_t at, uint32_t cand, uint32_t len)
{
    uint32_t back = extend_back(p->in + at, p->in + cand);
    back = min_u32(back, min_u32(at - p->anchor, MAX_MATCH - len));
    put_seq(d, p->in + p->anchor, at - back - p->anchor, len + back, at - cand);
    p->at = p->anchor = at + len;
}

/* What suits a block. */
struct tuning {
    /* fast */
    uint64_t factor;              /* HASH_FACTOR() */
    uint32_t stride;              /* every so manyth position of a match is inserted */
    bool nearest;                 /* of equally long matches the nearest, not the first */
    /* default */
    int32_t min_gain;             /* a match must gain more, in quarter bytes */
    uint32_t dense_len;           /* of longer matches every other position is inserted: up
                                     to 8 % faster, 0.1-0.2 % larger */
    bool deep;                    /* the older four positions are looked at too */
    bool two_steps;               /* a match two bytes later is tried as well, not only one byte */
};

/* Goes by how often two bytes of a sample are the same. Fast: hashing 4 bytes
 * instead of 5 is 3 % smaller on generated qualities of 40 levels; 6 and the
 * nearest, 2 % on those of 4. Default: a second lazy step gains 0.5 % on the
 * former, for 11 % of the speed; the literals of some data cost so little
 * that short matches do not pay (10x reads 0.25 %, unmapped ones 3 %). */
static struct tuning tune(const uint8_t *in, uint32_t n)
{
    uint16_t count[256] = {0};
    uint32_t same = 0, samples = 0;
    for (uint32_t i = 0; i < n; i += SAMPLE_STRIDE, samples++)
        same += count[in[i]]++;
    uint32_t pairs = samples * (samples - 1) / 2;
    if (same < pairs / 32)
        return (struct tuning){HASH_FACTOR(4), 3, true, 0, 32, false, false};
    if (same < pairs / 16)
        return (struct tuning){HASH_FACTOR(5), 3, false, 0, 32, false, true};
    if (same < pairs / 9)
        return (struct tuning){HASH_FACTOR(6), FAST_MAX_STRIDE, true, 4, 128, true, true};
    if (same < pairs / 9 * 2)
        return (struct tuning){HASH_FACTOR(6), FAST_MAX_STRIDE, true, 0, 32, true, true};
    return (struct tuning){HASH_FACTOR(6), FAST_MAX_STRIDE, true, 6, 32, true, true};
}

/* ---- fast: of four positions at once the best match, found without a branch ---- */

static inline uint32_t hash_fast(const uint8_t *at, uint64_t factor)
{
    return hash(load_le64(at), factor, FAST_HASH_BITS);
}

/* Inserts position at + k and rates the candidate found there: by its length up
 * to 16, then how near it is or how early. far: it may exceed the window. */
static inline uint32_t probe_fast(uint16_t *head, const uint8_t *in, uint32_t at, uint32_t k,
                                  uint64_t factor, bool nearest, bool far)
{
    uint32_t h = hash_fast(in + at + k, factor), cand = head[h], early = FAST_GROUP - 1 - k;
    head[h] = (uint16_t)(at + k);
    uint32_t score = agree16(in + at + k, in + cand) << 18 | (nearest ? cand << 2 | early : early << 16 | cand);
    if (far)
        score &= (uint32_t)((int32_t)(at + k - cand - (MAX_DIST + 1)) >> 31);
    return score;
}

/* Inserts positions of a match, and of what is before it if it is short. The
 * loop rarely runs more than twice: a count that is hard to predict costs more
 * than inserting a position again. */
static inline void insert_matched(uint16_t *head, const uint8_t *in, uint32_t at, uint32_t end,
                                  uint64_t factor, uint32_t stride)
{
    uint32_t final = end - stride * FAST_INSERT + stride - 1;
    for (; at < final; at += stride * FAST_INSERT)
        UNROLL(3)
        for (uint32_t i = 0; i < FAST_INSERT; i++)
            head[hash_fast(in + at + stride * i, factor)] = (uint16_t)(at + stride * i);
    UNROLL(3)
    for (uint32_t i = 0; i < FAST_INSERT; i++)
        head[hash_fast(in + final + stride * i, factor)] = (uint16_t)(final + stride * i);
}

INLINE void parse_fast_as(struct bam_deflate *d, struct parse *state, uint32_t stop,
                          const struct tuning *t, bool nearest, bool far)
{
    struct parse p = *state;
    const uint64_t factor = t->factor;
    while (p.at < stop) {
        uint32_t score[FAST_GROUP];
        UNROLL(4)
        for (uint32_t k = 0; k < FAST_GROUP; k++)
            score[k] = probe_fast(d->fast_head, p.in, p.at, k, factor, nearest, far);
        uint32_t best = max_u32(max_u32(score[0], score[1]), max_u32(score[2], score[3]));
        uint32_t len = best >> 18, cand = (nearest ? best >> 2 : best) & 0xffff;
        uint32_t early = (nearest ? best : best >> 16) & 3;
        if (len < MIN_MATCH || cand < 8) {
            p.at += FAST_GROUP + ((p.at - p.anchor) >> FAST_SKIP);
            continue;
        }
        uint32_t at = p.at + FAST_GROUP - 1 - early;
        if (len == 16)
            len = extend(p.in + at, p.in + cand, 16, min_u32(p.n - at, MAX_MATCH));
        put_match(d, &p, at, cand, len);
        if (p.at < p.last)
            insert_matched(d->fast_head, p.in, at + FAST_GROUP, p.at, factor, t->stride);
    }
    *state = p;
}

INLINE void parse_fast(struct bam_deflate *d, struct parse *state, uint32_t stop, const struct tuning *t)
{
    bool far = stop > MAX_DIST;
    if (t->nearest && far)
        parse_fast_as(d, state, stop, t, true, true);
    else if (t->nearest)
        parse_fast_as(d, state, stop, t, true, false);
    else if (far)
        parse_fast_as(d, state, stop, t, false, true);
    else
        parse_fast_as(d, state, stop, t, false, false);
}

/* ---- default: lazy, among the last positions of two hashes ---- */

struct match {
    uint32_t len, cand;           /* cand 0: none found */
    int32_t gain;
};

/* Takes the candidate if it is better: what it saves, in quarter bytes, less
 * the bits of its distance. */
static inline void consider(struct match *m, uint32_t at, uint32_t cand, uint32_t len)
{
    int32_t gain = (int32_t)(4 * len) - (int32_t)log2_floor(at - cand);
    if (gain > m->gain)
        *m = (struct match){len, cand, gain};
}

static inline uint64_t *long_slot(struct bam_deflate *d, uint64_t v)
{
    return &d->long_head[2 * hash(v, HASH_FACTOR(LONG_BYTES), LONG_BITS)];
}

static inline uint32_t *short_slot(struct bam_deflate *d, uint64_t v)
{
    return &d->short_head[hash(v, HASH_FACTOR(SHORT_BYTES), SHORT_BITS)];
}

static inline void push_long(uint64_t l[2], uint32_t at)
{
    l[1] = l[1] << 16 | l[0] >> 48;
    l[0] = l[0] << 16 | at;
}

static inline void insert(struct bam_deflate *d, const uint8_t *in, uint32_t at)
{
    uint64_t v = load_le64(in + at), *l = long_slot(d, v);
    uint32_t *s = short_slot(d, v);
    push_long(l, at);
    *s = *s << 16 | at;
}

static inline void find_long(struct match *m, const struct parse *p, uint32_t at, uint64_t cands)
{
    const uint8_t *here = p->in + at;
    uint64_t v = load_le64(here);
    uint32_t limit = min_u32(p->n - at, MAX_MATCH);
    UNROLL(4)
    for (int k = 0; k < LONG_WAYS; k++) {
        uint32_t cand = cands >> 16 * k & 0xffff;
        const uint8_t *there = p->in + cand;
        if (load_le64(there) != v || at - cand > MAX_DIST)
            continue;
        /* Nearer ones came first: only a longer match can be better. */
        if (m->len >= 8
            && (m->len >= limit || load_le64(there + m->len - 7) != load_le64(here + m->len - 7)))
            continue;
        consider(m, at, cand, extend(here, there, 8, limit));
    }
}

/* Rates a candidate by its length up to 7, then how near it is. */
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

/* Inserts position at. Is there a match that gains more than m and bias? To m with it. */
static inline bool find(struct bam_deflate *d, const struct parse *p, uint32_t at, struct match *m,
                        int32_t bias, bool deep)
{
    uint64_t v = load_le64(p->in + at), *l = long_slot(d, v), newer = l[0], older = l[1];
    uint32_t *s = short_slot(d, v), shorts = *s;
    push_long(l, at);
    *s = shorts << 16 | at;
    struct match better = {m->len, 0, m->gain + bias};
    find_long(&better, p, at, newer);
    if (deep)
        find_long(&better, p, at, older);
    if (better.cand == 0 && m->len < 8)
        find_short(&better, p, at, shorts);
    if (better.cand == 0)
        return false;
    *m = better;
    return true;
}

INLINE void parse_default(struct bam_deflate *d, struct parse *state, uint32_t stop,
                          const struct tuning *t)
{
    struct parse p = *state;
    while (p.at < stop) {
        struct match m = {.gain = t->min_gain};
        uint32_t at = p.at, seen = at;
        if (!find(d, &p, at, &m, 0, t->deep)) {
            p.at += 1 + ((at - p.anchor) >> SKIP);
            continue;
        }
        while (m.len < NICE_LEN && seen + 2 < p.last) {
            seen = at + 1;
            if (find(d, &p, seen, &m, BIAS_1, t->deep)) {
                at = seen;
                continue;
            }
            if (!t->two_steps)
                break;
            seen = at + 2;
            if (!find(d, &p, seen, &m, BIAS_2, t->deep))
                break;
            at = seen;
        }
        put_match(d, &p, at, m.cand, m.len);
        uint32_t end = min_u32(p.at, p.last), step = m.len > t->dense_len ? 2 : 1;
        for (uint32_t i = seen + 1; i < end; i += step)
            insert(d, p.in, i);
    }
    *state = p;
}

/* ---- both ---- */

INLINE void parse_segments(struct bam_deflate *d, struct parse *p)
{
    const struct tuning t = tune(p->in, p->n);
    if (d->effort == BAM_DEFLATE_FAST) {
        memset(d->fast_head, 0, sizeof d->fast_head);
    } else {
        memset(d->long_head, 0, sizeof d->long_head);
        memset(d->short_head, 0, sizeof d->short_head);
    }
    p->at = FIRST;
    for (uint32_t end = SEGMENT; p->at < p->last; end += SEGMENT) {
        uint32_t stop = min_u32(end, p->last);
        if (d->effort != BAM_DEFLATE_FAST)
            parse_default(d, p, stop, &t);
        else
            parse_fast(d, p, stop, &t);
        d->mark[++d->n_segments] = (struct mark){d->n_seqs, d->n_lits};
    }
}
_Static_assert(MAX_DIST % SEGMENT == 0, "parse_fast() is told by segments whether the window matters");

static void parse_older(struct bam_deflate *d, struct parse *p) { parse_segments(d, p); }
NEWER static void parse_newer(struct bam_deflate *d, struct parse *p) { parse_segments(d, p); }

static void parse(struct bam_deflate *d, const uint8_t *in, uint32_t n)
{
    struct parse p = {.in = in, .n = n};
    d->n_seqs = d->n_lits = d->n_segments = 0;
    if (n > FIRST + MARGIN) {
        p.last = n - MARGIN;
        (d->newer ? parse_newer : parse_older)(d, &p);
    }
    uint32_t rest = n - p.anchor;
    d->seq[d->n_seqs++] = (struct seq){.lits = (uint16_t)rest};
    memcpy(d->lit + d->n_lits, in + p.anchor, rest);
    d->n_lits += rest;
    d->mark[++d->n_segments] = (struct mark){d->n_seqs, d->n_lits};
}

/* ---------------------------------------------------------------- blocks */

/* Two tables, since equal neighbours would wait for each other's counter. */
static void count_segments(struct bam_deflate *d)
{
    for (uint32_t g = 0; g < d->n_segments; g++) {
        uint16_t freq[2][256] = {0};
        uint32_t i = d->mark[g].lit, end = d->mark[g + 1].lit;
        for (; i + 2 <= end; i += 2) {
            freq[0][d->lit[i]]++;
            freq[1][d->lit[i + 1]]++;
        }
        if (i < end)
            freq[0][d->lit[i]]++;
        for (i = 0; i < 256; i++)
            d->lit_freq[g][i] = (uint16_t)(freq[0][i] + freq[1][i]);
    }
}

/* n log2(n) in 1/256 bit; the curve between powers of two is a parabola. */
static uint32_t n_log2_n(uint32_t n)
{
    if (n < 2)
        return 0;
    uint32_t e = log2_floor(n), m = (n << 8 >> e) & 255;
    return n * (256 * e + m + (88 * m * (256 - m) >> 16));
}

/* Bits that a code of its own would take for these, in 1/256 bit. */
static uint32_t entropy(const uint32_t *count)
{
    uint32_t total = 0, sum = 0;
    for (int i = 0; i < N_CLASSES; i++) {
        total += count[i];
        sum += n_log2_n(count[i]);
    }
    return n_log2_n(total) - sum;
}

static void classify(const struct bam_deflate *d, uint32_t g, uint32_t *count)
{
    for (int c = 0; c < N_CLASSES - 1; c++) {
        count[c] = 0;
        for (int i = 0; i < 8; i++)
            count[c] += d->lit_freq[g][8 * c + i];
    }
    count[N_CLASSES - 1] = d->mark[g + 1].seq - d->mark[g].seq;
}

/* The end of the block that begins with segment g: segments join it until
 * one differs too much. */
static uint32_t block_end(const struct bam_deflate *d, uint32_t g)
{
    uint32_t block[N_CLASSES], next[N_CLASSES], both[N_CLASSES];
    classify(d, g, block);
    uint32_t bits = entropy(block);
    for (g++; g < d->n_segments; g++) {
        classify(d, g, next);
        for (int i = 0; i < N_CLASSES; i++)
            both[i] = block[i] + next[i];
        uint32_t joint = entropy(both);
        if (joint > bits + entropy(next) + SPLIT_BITS * 256)
            break;
        bits = joint;
        memcpy(block, both, sizeof block);
    }
    return g;
}

/* Counts the symbols of segments [from, to). */
static void count_symbols(struct bam_deflate *d, uint32_t from, uint32_t to)
{
    memset(d->litlen_freq, 0, sizeof d->litlen_freq);
    memset(d->dist_freq, 0, sizeof d->dist_freq);
    for (uint32_t g = from; g < to; g++)
        for (int i = 0; i < 256; i++)
            d->litlen_freq[i] += d->lit_freq[g][i];
    d->litlen_freq[END_OF_BLOCK] = 1;
    for (uint32_t i = d->mark[from].seq; i < d->mark[to].seq; i++)
        if (d->seq[i].len) {
            d->litlen_freq[256 + d->seq[i].len_sym]++;
            d->dist_freq[d->seq[i].dist_sym]++;
        }
}

/* ---------------------------------------------------------------- output */

struct bits {
    uint64_t buf;
    uint32_t n;
    uint8_t *out;
};

static inline void put(struct bits *b, uint64_t v, uint32_t n)
{
    b->buf |= v << b->n;
    b->n += n;
}

static inline void put_code(struct bits *b, code c)
{
    put(b, code_bits(c), code_len(c));
}

/* Leaves up to 7 bits. Stores 8 bytes. */
static inline void flush(struct bits *b)
{
    store_le64(b->out, b->buf);
    b->out += b->n >> 3;
    b->buf >>= b->n & ~7u;
    b->n &= 7;
}

static void write_header(struct bits *b, const struct huffman_header *h, bool final)
{
    put(b, final | 2 << 1, 3);
    put(b, h->n_litlen - 257, 5);
    put(b, h->n_dist - 1, 5);
    put(b, h->n_precode - 4, 4);
    flush(b);
    for (uint32_t i = 0; i < h->n_precode; i++) {
        put(b, code_len(h->precode[huffman_precode_order[i]]), 3);
        flush(b);
    }
    for (uint32_t i = 0; i < h->n_items; i++) {
        uint32_t sym = h->item[i] & 31;
        put_code(b, h->precode[sym]);
        put(b, h->item[i] >> 5, huffman_precode_extra[sym]);
        flush(b);
    }
}

static void make_match_codes(struct bam_deflate *d)
{
    for (uint32_t len = MIN_MATCH; len <= MAX_MATCH; len++) {
        code c = d->litlen[len_symbol(len)];
        uint32_t extra = len_extra_bits(len);
        d->match_bits[len] = code_bits(c) | ((len - 3) & ((1u << extra) - 1)) << code_len(c);
        d->match_len[len] = (uint8_t)(code_len(c) + extra);
    }
}

/* Four literals at once; those beyond n come out as no bits. */
static inline void put_literal_codes(const struct bam_deflate *d, struct bits *b, const uint8_t *lit, int32_t n)
{
    UNROLL(4)
    for (int32_t k = 0; k < 4; k++)
        put_code(b, d->litlen[lit[k]] & (uint32_t)((k - n) >> 31));
    flush(b);
}

INLINE void write_seqs(const struct bam_deflate *d, uint32_t from, uint32_t to, struct bits *out)
{
    struct bits b = *out;
    const uint8_t *lit = d->lit + d->mark[from].lit;
    const struct seq *end = d->seq + d->mark[to].seq;
    for (const struct seq *s = d->seq + d->mark[from].seq; s < end; s++) {
        int32_t left = s->lits;
        do {
            put_literal_codes(d, &b, lit, left);
            lit += 4;
            left -= 4;
        } while (left > 0);
        lit += left;
        if (s->len) {
            uint32_t extra = dist_extra_bits(s->dist);
            put(&b, d->match_bits[s->len], d->match_len[s->len]);
            put_code(&b, d->dist[s->dist_sym]);
            put(&b, (s->dist - 1u) & ((1u << extra) - 1), extra);
            flush(&b);
        }
    }
    put_code(&b, d->litlen[END_OF_BLOCK]);
    flush(&b);
    *out = b;
}

static void write_older(const struct bam_deflate *d, uint32_t from, uint32_t to, struct bits *b)
{
    write_seqs(d, from, to, b);
}

NEWER static void write_newer(const struct bam_deflate *d, uint32_t from, uint32_t to, struct bits *b)
{
    write_seqs(d, from, to, b);
}

static size_t store(const uint8_t *in, size_t n, uint8_t *out, size_t cap)
{
    if (cap < STORED_HEADER + n)
        return 0;
    out[0] = 1;                                    /* final, type 00 */
    store_le16(out + 1, (uint16_t)n);
    store_le16(out + 3, (uint16_t)~n);
    memcpy(out + STORED_HEADER, in, n);
    return STORED_HEADER + n;
}

static uint64_t data_bits(const struct bam_deflate *d)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < HUFFMAN_N_LITLEN; i++)
        bits += (uint64_t)d->litlen_freq[i] * code_len(d->litlen[i]);
    for (uint32_t i = 265; i < 285; i++)
        bits += (uint64_t)d->litlen_freq[i] * ((i - 261) / 4);
    for (uint32_t i = 0; i < HUFFMAN_N_DIST; i++)
        bits += (uint64_t)d->dist_freq[i] * (code_len(d->dist[i]) + (i < 4 ? 0 : i / 2 - 1));
    return bits;
}

size_t bam_deflate(struct bam_deflate *d, const uint8_t *in, size_t n, uint8_t *out, size_t cap)
{
    struct bits b = {.out = out};
    size_t room = cap < n + STORED_HEADER ? cap : n + STORED_HEADER;
    parse(d, in, (uint32_t)n);
    count_segments(d);
    for (uint32_t g = 0, end; g < d->n_segments; g = end) {
        struct huffman_header h;
        end = block_end(d, g);
        count_symbols(d, g, end);
        huffman_code(d->litlen, d->litlen_freq, HUFFMAN_N_LITLEN, MAX_BITS);
        huffman_code(d->dist, d->dist_freq, HUFFMAN_N_DIST, MAX_BITS);
        size_t size = (size_t)((b.n + huffman_header(&h, d->litlen, d->dist) + data_bits(d) + 7) / 8);
        if ((size_t)(b.out - out) + size + 8 > room)
            return store(in, n, out, cap);
        make_match_codes(d);
        write_header(&b, &h, end == d->n_segments);
        (d->newer ? write_newer : write_older)(d, g, end, &b);
    }
    return (size_t)(b.out - out) + (b.n > 0);
}

struct bam_deflate *bam_deflate_new_portable(int effort)
{
    struct bam_deflate *d = calloc(1, sizeof *d);
    if (d)
        d->effort = effort;
    return d;
}

struct bam_deflate *bam_deflate_new(int effort)
{
    struct bam_deflate *d = bam_deflate_new_portable(effort);
    if (d)
        d->newer = cpu_is_newer();
    return d;
}

void bam_deflate_free(struct bam_deflate *d)
{
    free(d);
}
