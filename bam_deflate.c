/* SPDX-License-Identifier: MIT */
/* How it works, in the order of bam_deflate():
 *
 *   parse    in[n] -> literals and sequences (so many literals, then a match)
 *   codes    symbol counts -> two Huffman codes, their header
 *   write    literals and sequences -> bits
 *
 * A block has at most 64 KiB, so a position fits 16 bits and the tables of
 * positions start empty (all 0: position 0 is as good a candidate as any, since
 * every candidate is compared). */
#include <stdbool.h>
#include <stdlib.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif
#include "bam_deflate.h"
#include "endian_io.h"

enum {
    /* RFC 1951 section 3.2.5 */
    MIN_MATCH = 4,                /* of 3 allowed: shorter ones hardly pay in BAM */
    MAX_MATCH = 258,
    MAX_DIST = 32768,
    END_OF_BLOCK = 256,
    N_LITLEN = 286,
    N_DIST = 30,
    /* section 3.2.7 */
    N_PRECODE = 19,
    MAX_PRECODE_BITS = 7,
    /* 15 are allowed. With 14, four literals always fit the bit buffer. */
    MAX_BITS = 14,
    SKIP = 6,
    STORED_HEADER = 5,            /* section 3.2.4, from a byte boundary */


    /* Every position the parser visits has this many bytes after it, so that
     * candidates are compared 16 bytes at once without looking for the end. */
    MARGIN = 32,
    FAST_HASH_BYTES = 5,
    FAST_BITS = 13,
    LONG_HASH_BYTES = 8,
    LONG_BITS = 13,
    SHORT_HASH_BYTES = 4,
    SHORT_BITS = 12,
    WAYS = 4,

    MAX_SEQS = BAM_DEFLATE_MAX / MIN_MATCH + 2,
};

/* Literals, then a match; the last one of a stream has no match (len 0). */
struct seq {
    uint16_t lits;
    uint16_t len;
    uint16_t dist;
    uint8_t len_sym;              /* less 256 */
    uint8_t dist_sym;
};

struct code {
    uint16_t bits;                /* as they go out, lowest first */
    uint16_t len;
};

struct bam_deflate {
    int effort;
    uint32_t n_seqs, n_lits;
    uint8_t lit[BAM_DEFLATE_MAX + 33];
    uint32_t litlen_freq[N_LITLEN];
    uint32_t dist_freq[N_DIST];
    struct code litlen[N_LITLEN];
    struct code dist[N_DIST];
    struct seq seq[MAX_SEQS];
    uint32_t match_code[MAX_MATCH + 1];
    uint8_t match_bits[MAX_MATCH + 1];
    union {
        uint16_t fast_head[1 << FAST_BITS];
        struct {
            /* The last WAYS positions of a hash, newest lowest. */
            uint64_t long_head[1 << LONG_BITS];
            uint64_t short_head[1 << SHORT_BITS];
        };
    };
};

static inline uint64_t load_le64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

static inline void store_le64(uint8_t *p, uint64_t v)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    memcpy(p, &v, sizeof v);
}

/* ---------------------------------------------------------------- symbols */

static inline uint32_t log2_floor(uint32_t v)
{
    return 31u - (uint32_t)__builtin_clz(v);
}

/* RFC 1951 section 3.2.5: two symbols per power of two, distances 1-4 alone. */
static inline uint32_t dist_extra_bits(uint32_t dist)
{
    uint32_t log = log2_floor((dist - 1) | 2);
    return log - 1;
}

static inline uint32_t dist_symbol(uint32_t dist)
{
    uint32_t extra = dist_extra_bits(dist);
    return 2 * extra + ((dist - 1) >> extra);
}

/* Four symbols per power of two, lengths 3-10 alone, 258 out of line. */
static inline uint32_t len_extra_bits(uint32_t len)
{
    return len == MAX_MATCH ? 0 : log2_floor((len - 3) | 4) - 2;
}

static inline uint32_t len_symbol(uint32_t len)
{
    uint32_t extra = len_extra_bits(len);
    return len == MAX_MATCH ? 285 : 257 + 4 * extra + ((len - 3) >> extra);
}

/* ---------------------------------------------------------------- matches */

static inline uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }
static inline uint32_t max_u32(uint32_t a, uint32_t b) { return a > b ? a : b; }

static inline uint32_t hash(uint64_t v, uint32_t bytes, uint32_t bits)
{
    return (uint32_t)((v << (64 - 8 * bytes)) * 0x9e3779b97f4a7c15u >> (64 - bits));
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
    d->litlen_freq[len_sym]++;
    d->dist_freq[dist_sym]++;
    put_literals(d, in, lits);
}

/* ---- fast: of four positions at once take the best match, without a branch ---- */

/* Inserts in + at, and rates the candidate found: by length up to 16, then how
 * early (k of 4), then how near. */
static inline uint32_t probe_fast(uint16_t *head, const uint8_t *in, uint32_t at, uint32_t k, bool far)
{
    uint32_t h = hash(load_le64(in + at + k), FAST_HASH_BYTES, FAST_BITS);
    uint32_t cand = head[h];
    head[h] = (uint16_t)(at + k);
    uint32_t score = agree16(in + at + k, in + cand) << 18 | (3 - k) << 16 | cand;
    if (far)
        score &= (uint32_t)((int32_t)(at + k - cand - (MAX_DIST + 1)) >> 31);
    return score;
}

static inline void insert_fast(uint16_t *head, const uint8_t *in, uint32_t at)
{
    head[hash(load_le64(in + at), FAST_HASH_BYTES, FAST_BITS)] = (uint16_t)at;
}

#ifndef FIX
#define FIX 3
#define STR 3
#define LOOP 1
#define TEND 1
#endif
static inline void insert_matched(uint16_t *head, const uint8_t *in, uint32_t at, uint32_t end)
{
    uint32_t last = end - FIX * STR + STR - TEND;
    if (LOOP)
        while (at < last)
            for (int i = 0; i < FIX; i++, at += STR)
                insert_fast(head, in, at);
    for (int i = 0; i < FIX; i++)
        insert_fast(head, in, last + STR * i);
}

struct parse {
    uint32_t at;                  /* next position to look at */
    uint32_t anchor;              /* first byte not in a sequence yet */
};

/* Parses up to stop; far: distances may exceed the window. */
static inline void parse_fast(struct bam_deflate *d, const uint8_t *in, uint32_t n, struct parse *p,
                              uint32_t stop, bool far)
{
    uint32_t at = p->at, anchor = p->anchor;
    while (at < stop) {
        uint32_t score[4];
        for (uint32_t k = 0; k < 4; k++)
            score[k] = probe_fast(d->fast_head, in, at, k, far);
        uint32_t best = max_u32(max_u32(score[0], score[1]), max_u32(score[2], score[3]));
        uint32_t cand = best & 0xffff;
        if (best < MIN_MATCH << 18 || cand < 8) {
            at += 4 + ((at - anchor) >> SKIP);
            continue;
        }
        at += 3 - (best >> 16 & 3);
#ifdef EXT0
        uint32_t fwd = extend(in + at, in + cand, 0, min_u32(n - at, MAX_MATCH));
#else
        uint32_t fwd = best >> 18;
        if (fwd == 16)
            fwd = extend(in + at, in + cand, 16, min_u32(n - at, MAX_MATCH));
#endif
        uint32_t back = min_u32(extend_back(in + at, in + cand), min_u32(at - anchor, MAX_MATCH - fwd));
        put_seq(d, in + anchor, at - back - anchor, fwd + back, at - cand);
        anchor = at + fwd;
        if (anchor < stop)
            insert_matched(d->fast_head, in, at + 4, anchor);
        at = anchor;
    }
    p->at = at;
    p->anchor = anchor;
}

/* ---- default: lazy, the last four positions of two hashes ---- */

struct match {
    uint32_t len, cand;
    int32_t gain;
};

/* What a match is worth, in units that serve to compare matches. */
static inline int32_t gain_of(uint32_t len, uint32_t dist)
{
    return (int32_t)(4 * len) - (int32_t)log2_floor(dist);
}

static inline void consider(struct match *m, uint32_t at, uint32_t cand, uint32_t len)
{
    int32_t gain = gain_of(len, at - cand);
    if (gain > m->gain)
        *m = (struct match){len, cand, gain};
}

static inline void push(uint64_t *head, uint32_t at)
{
    *head = *head << 16 | at;
}

static inline void insert_default(struct bam_deflate *d, const uint8_t *in, uint32_t at)
{
    uint64_t v = load_le64(in + at);
    push(&d->long_head[hash(v, LONG_HASH_BYTES, LONG_BITS)], at);
    push(&d->short_head[hash(v, SHORT_HASH_BYTES, SHORT_BITS)], at);
}

/* Rates a candidate by length up to 7, then how near. */
static inline uint32_t score_short(const uint8_t *in, uint64_t v, uint32_t at, uint32_t cand)
{
    uint64_t x = (load_le64(in + cand) ^ v) | 1ull << 63;
    uint32_t score = ((uint32_t)__builtin_ctzll(x) & 0x38) << 13 | cand;
    return score & (uint32_t)((int32_t)(at - cand - (MAX_DIST + 1)) >> 31);
}

static inline void find_long(struct match *m, const uint8_t *in, uint64_t v, uint32_t at, uint64_t cands, uint32_t limit)
{
    for (int k = 0; k < WAYS; k++) {
        uint32_t cand = cands >> 16 * k & 0xffff;
        if (load_le64(in + cand) != v || at - cand > MAX_DIST)
            continue;
        /* Only a longer match can be better, since nearer ones came first. */
        if (m->len > 8 && (m->len >= limit
            || load_le64(in + cand + m->len - 7) != load_le64(in + at + m->len - 7)))
            continue;
        consider(m, at, cand, extend(in + at, in + cand, 8, limit));
    }
}

/* Finds the best match at in + at that gains more than m, and inserts it. */
static inline bool find(struct bam_deflate *d, struct match *m, const uint8_t *in, uint32_t at, uint32_t n, int32_t bias)
{
    uint64_t v = load_le64(in + at);
    uint64_t *lh = &d->long_head[hash(v, LONG_HASH_BYTES, LONG_BITS)];
    uint64_t *sh = &d->short_head[hash(v, SHORT_HASH_BYTES, SHORT_BITS)];
    uint64_t longs = *lh, shorts = *sh;
    push(lh, at);
    push(sh, at);
    uint32_t limit = min_u32(n - at, MAX_MATCH), before = m->len;
    struct match b = {m->len, 0, m->gain + bias};
    find_long(&b, in, v, at, longs, limit);
    if (b.cand == 0 && before < 8) {
        uint32_t s = 0;
        for (int k = 0; k < WAYS; k++)
            s = max_u32(s, score_short(in, v, at, shorts >> 16 * k & 0xffff));
        uint32_t len = s >> 16, cand = s & 0xffff;
        if (len >= MIN_MATCH) {
            if (len == 7)
                len = extend(in + at, in + cand, 7, limit);
            consider(&b, at, cand, len);
        }
    }
    if (b.cand == 0)
        return false;
    *m = b;
    return true;
}

#ifndef NICE
#define NICE 40
#endif
#ifndef LAZY
#define LAZY 1
#define BIAS 1
#endif
#ifndef BIAS2
#define BIAS2 5
#endif
#ifndef STRIDE
#define STRIDE 1
#endif
static void parse_default(struct bam_deflate *d, const uint8_t *in, uint32_t n, struct parse *p, uint32_t stop)
{
    uint32_t at = p->at, anchor = p->anchor;
    while (at < stop) {
        struct match m = {0};
        if (!find(d, &m, in, at, n, 0)) {
            at += 1 + ((at - anchor) >> 8);
            continue;
        }
        uint32_t done = at;
        while (m.len < NICE) {
            done = at + 1;
            if (find(d, &m, in, at + 1, n, BIAS)) {
                at++;
                continue;
            }
            if (LAZY < 2) break;
            done = at + 2;
            if (!find(d, &m, in, at + 2, n, BIAS2))
                break;
            at += 2;
        }
        uint32_t back = m.cand < 8 ? 0 : min_u32(extend_back(in + at, in + m.cand), min_u32(at - anchor, MAX_MATCH - m.len));
        put_seq(d, in + anchor, at - back - anchor, m.len + back, at - m.cand);
        anchor = at + m.len;
        if (anchor < stop)
            for (at = done + 1; at < anchor; at += STRIDE)
                insert_default(d, in, at);
        at = anchor;
    }
    p->at = at;
    p->anchor = anchor;
}

static void parse(struct bam_deflate *d, const uint8_t *in, uint32_t n)
{
    struct parse p = {.at = 0, .anchor = 0};
    d->n_seqs = d->n_lits = 0;
    memset(d->litlen_freq, 0, sizeof d->litlen_freq);
    memset(d->dist_freq, 0, sizeof d->dist_freq);
    if (n > 2 * MARGIN) {
        uint32_t stop = n - MARGIN;
        p.at = 16;
        if (d->effort == BAM_DEFLATE_FAST) {
            memset(d->fast_head, 0, sizeof d->fast_head);
            parse_fast(d, in, n, &p, min_u32(stop, MAX_DIST), false);
            parse_fast(d, in, n, &p, stop, true);
        } else {
            memset(d->long_head, 0, sizeof d->long_head);
            memset(d->short_head, 0, sizeof d->short_head);
            parse_default(d, in, n, &p, stop);
        }
    }
    uint32_t lits = n - p.anchor;
    d->seq[d->n_seqs++] = (struct seq){.lits = (uint16_t)lits};
    memcpy(d->lit + d->n_lits, in + p.anchor, lits);
    d->n_lits += lits;
}

/* Counts the literals of all sequences. Four tables, since equal neighbours
 * would wait for each other's counter. */
static void count_literals(struct bam_deflate *d)
{
    uint32_t freq[4][256] = {0}, i = 0;
    for (; i + 8 <= d->n_lits; i += 8) {
        uint64_t v = load_le64(d->lit + i);
        for (int k = 0; k < 8; k++)
            freq[k & 3][v >> 8 * k & 0xff]++;
    }
    for (; i < d->n_lits; i++)
        freq[0][d->lit[i]]++;
    for (i = 0; i < 256; i++)
        d->litlen_freq[i] = freq[0][i] + freq[1][i] + freq[2][i] + freq[3][i];
}

/* ---------------------------------------------------------------- codes */

/* Minimum-redundancy code lengths, in place (Moffat and Katajainen 1995):
 * a[0..n) ascending weights in, non-increasing depths out; n >= 2. */
static void huffman_depths(uint32_t *a, int n)
{
    int leaf = 0, root = 0;
    for (int next = 0; next < n - 1; next++) {
        uint32_t sum = 0;
        for (int k = 0; k < 2; k++) {
            if (leaf >= n || (root < next && a[root] < a[leaf])) {
                sum += a[root];
                a[root++] = (uint32_t)next;
            } else {
                sum += a[leaf++];
            }
        }
        a[next] = sum;
    }
    a[n - 2] = 0;
    for (int next = n - 3; next >= 0; next--)
        a[next] = a[a[next]] + 1;
    int avail = 1, used = 0, next = n - 1;
    uint32_t depth = 0;
    for (root = n - 2; avail > 0; depth++) {
        for (; root >= 0 && a[root] == depth; root--)
            used++;
        for (; avail > used; avail--)
            a[next--] = depth;
        avail = 2 * used;
        used = 0;
    }
}

/* Makes num[1..limit] leaves of each depth a full code again after the deeper
 * ones were cut to limit: leaves just above the limit sink until it fits. */
static void refill(uint32_t *num, uint32_t limit)
{
    uint32_t sum = 0;                              /* Kraft's, in units of 2^-limit */
    for (uint32_t l = 1; l <= limit; l++)
        sum += num[l] << (limit - l);
    while (sum > 1u << limit) {
        uint32_t l = limit - 1;
        while (num[l] == 0)
            l--;
        num[l]--;
        num[l + 1]++;
        sum -= 1u << (limit - l - 1);
    }
    for (; sum < 1u << limit; sum++) {
        num[limit]--;
        num[limit - 1]++;
    }
}

static uint32_t reverse_bits(uint32_t v, uint32_t n)
{
    v = (v & 0x5555) << 1 | (v >> 1 & 0x5555);
    v = (v & 0x3333) << 2 | (v >> 2 & 0x3333);
    v = (v & 0x0f0f) << 4 | (v >> 4 & 0x0f0f);
    v = (v & 0x00ff) << 8 | (v >> 8 & 0x00ff);
    return v >> (16 - n);
}

/* Canonical codes from lengths (RFC 1951 section 3.2.2). */
static void assign_codes(struct code *code, int n, const uint32_t *num)
{
    uint32_t next[16], c = 0;
    for (uint32_t l = 1; l < 16; l++) {
        next[l] = c;
        c = (c + num[l]) << 1;
    }
    for (int i = 0; i < n; i++)
        if (code[i].len)
            code[i].bits = (uint16_t)reverse_bits(next[code[i].len]++, code[i].len);
}

/* A code for freq[n] with lengths up to limit. At least two symbols get one, so
 * that the code is complete: not all decoders take another. */
static void make_code(struct code *code, const uint32_t *freq, int n, uint32_t limit)
{
    uint32_t sorted[N_LITLEN], weight[N_LITLEN], num[16] = {0};
    int used = 0;
    for (int i = 0; i < n; i++) {
        code[i] = (struct code){0};
        if (freq[i])
            sorted[used++] = freq[i] << 9 | (uint32_t)i;
    }
    for (int i = 0; used < 2; i++)
        if (!freq[i])
            sorted[used++] = (uint32_t)i;
    {
        uint32_t tmp[N_LITLEN];
        for (int sh = 9; sh < 25; sh += 8) {
            uint16_t n_[257] = {0};
            for (int i = 0; i < used; i++) n_[(sorted[i] >> sh & 255) + 1]++;
            for (int i = 0; i < 256; i++) n_[i + 1] += n_[i];
            for (int i = 0; i < used; i++) tmp[n_[sorted[i] >> sh & 255]++] = sorted[i];
            memcpy(sorted, tmp, (size_t)used * 4);
        }
    }
    for (int i = 0; i < used; i++)
        weight[i] = sorted[i] >> 9;
    huffman_depths(weight, used);
    for (int i = 0; i < used; i++)
        num[weight[i] < limit ? weight[i] : limit]++;
    refill(num, limit);
    int i = 0;
    for (uint32_t l = limit; l > 0; l--)
        for (uint32_t k = num[l]; k > 0; k--)
            code[sorted[i++] & 511].len = (uint16_t)l;
    assign_codes(code, n, num);
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

/* Leaves up to 7 bits. Stores 8 bytes. */
static inline void flush(struct bits *b)
{
    store_le64(b->out, b->buf);
    b->out += b->n >> 3;
    b->buf >>= b->n & ~7u;
    b->n &= 7;
}

/* What section 3.2.7 puts before the data: run-length coded code lengths. */
struct header {
    uint32_t n_litlen, n_dist, n_precode, n_items;
    uint16_t item[N_LITLEN + N_DIST];            /* symbol | extra << 5 */
    struct code precode[N_PRECODE];
};

static const uint8_t precode_order[N_PRECODE] = {
    16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15,
};
static const uint8_t precode_extra[N_PRECODE] = {[16] = 2, [17] = 3, [18] = 7};

static void put_item(struct header *h, uint32_t *freq, uint32_t sym, uint32_t extra)
{
    h->item[h->n_items++] = (uint16_t)(sym | extra << 5);
    freq[sym]++;
}

static void put_run(struct header *h, uint32_t *freq, uint32_t len, uint32_t run)
{
    while (len == 0 && run >= 11) {
        uint32_t k = run < 138 ? run : 138;
        put_item(h, freq, 18, k - 11);
        run -= k;
    }
    if (len == 0 && run >= 3) {
        put_item(h, freq, 17, run - 3);
        return;
    }
    if (len != 0 && run >= 4) {
        put_item(h, freq, len, 0);
        for (run--; run >= 3;) {
            uint32_t k = run < 6 ? run : 6;
            put_item(h, freq, 16, k - 3);
            run -= k;
        }
    }
    while (run-- > 0)
        put_item(h, freq, len, 0);
}

/* Returns the header's size in bits, the three of the block's type included. */
static uint32_t make_header(struct header *h, const struct bam_deflate *d)
{
    uint8_t lens[N_LITLEN + N_DIST];
    uint32_t freq[N_PRECODE] = {0}, n = 0;
    h->n_items = 0;
    for (h->n_litlen = N_LITLEN; h->n_litlen > 257 && !d->litlen[h->n_litlen - 1].len;)
        h->n_litlen--;
    for (h->n_dist = N_DIST; h->n_dist > 1 && !d->dist[h->n_dist - 1].len;)
        h->n_dist--;
    for (uint32_t i = 0; i < h->n_litlen; i++)
        lens[n++] = (uint8_t)d->litlen[i].len;
    for (uint32_t i = 0; i < h->n_dist; i++)
        lens[n++] = (uint8_t)d->dist[i].len;
    for (uint32_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && lens[j] == lens[i];)
            j++;
        put_run(h, freq, lens[i], j - i);
    }
    make_code(h->precode, freq, N_PRECODE, MAX_PRECODE_BITS);
    for (h->n_precode = N_PRECODE; h->n_precode > 4 && !h->precode[precode_order[h->n_precode - 1]].len;)
        h->n_precode--;
    uint32_t size = 3 + 5 + 5 + 4 + 3 * h->n_precode;
    for (uint32_t i = 0; i < N_PRECODE; i++)
        size += freq[i] * (h->precode[i].len + precode_extra[i]);
    return size;
}

static void write_header(struct bits *b, const struct header *h, bool final)
{
    put(b, final | 2 << 1, 3);
    put(b, h->n_litlen - 257, 5);
    put(b, h->n_dist - 1, 5);
    put(b, h->n_precode - 4, 4);
    flush(b);
    for (uint32_t i = 0; i < h->n_precode; i++) {
        put(b, h->precode[precode_order[i]].len, 3);
        flush(b);
    }
    for (uint32_t i = 0; i < h->n_items; i++) {
        uint32_t sym = h->item[i] & 31;
        put(b, h->precode[sym].bits, h->precode[sym].len);
        put(b, h->item[i] >> 5, precode_extra[sym]);
        flush(b);
    }
}

/* Code and extra bits of every match length in one. */
static void make_match_codes(struct bam_deflate *d)
{
    for (uint32_t len = MIN_MATCH; len <= MAX_MATCH; len++) {
        struct code c = d->litlen[len_symbol(len)];
        uint32_t extra = len_extra_bits(len);
        d->match_code[len] = c.bits | ((len - 3) & ((1u << extra) - 1)) << c.len;
        d->match_bits[len] = (uint8_t)(c.len + extra);
    }
}

static void write_seqs(const struct bam_deflate *d, struct bits *out)
{
    struct bits b = *out;
    const uint8_t *lit = d->lit;
    const struct seq *s = d->seq;
    for (uint32_t i = 0; i < d->n_seqs; i++, s++) {
        int32_t left = s->lits;
        do {
            for (int k = 0; k < 4; k++) {
                uint32_t c;
                memcpy(&c, &d->litlen[lit[k]], 4);
                c &= (uint32_t)((k - left) >> 31);
                put(&b, c & 0xffff, c >> 16);
            }
            flush(&b);
            lit += 4;
            left -= 4;
        } while (left > 0);
        lit += left;
        if (s->len) {
            struct code c = d->dist[s->dist_sym];
            uint32_t extra = dist_extra_bits(s->dist);
            put(&b, d->match_code[s->len], d->match_bits[s->len]);
            put(&b, c.bits, c.len);
            put(&b, (s->dist - 1u) & ((1u << extra) - 1), extra);
            flush(&b);
        }
    }
    put(&b, d->litlen[END_OF_BLOCK].bits, d->litlen[END_OF_BLOCK].len);
    flush(&b);
    *out = b;
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
    for (uint32_t i = 0; i < N_LITLEN; i++)
        bits += (uint64_t)d->litlen_freq[i] * d->litlen[i].len;
    for (uint32_t i = 265; i < 285; i++)
        bits += (uint64_t)d->litlen_freq[i] * ((i - 261) / 4);
    for (uint32_t i = 0; i < N_DIST; i++)
        bits += (uint64_t)d->dist_freq[i] * (d->dist[i].len + (i < 4 ? 0 : i / 2 - 1));
    return bits;
}

size_t bam_deflate(struct bam_deflate *d, const uint8_t *in, size_t n, uint8_t *out, size_t cap)
{
    parse(d, in, (uint32_t)n);
    count_literals(d);
    d->litlen_freq[END_OF_BLOCK]++;
    make_code(d->litlen, d->litlen_freq, N_LITLEN, MAX_BITS);
    make_code(d->dist, d->dist_freq, N_DIST, MAX_BITS);
    struct header h;
    size_t size = (size_t)((make_header(&h, d) + data_bits(d) + 7) / 8);
    if (size >= n + STORED_HEADER || size + 8 > cap)
        return store(in, n, out, cap);
    make_match_codes(d);
    struct bits b = {.out = out};
    write_header(&b, &h, true);
    write_seqs(d, &b);
    return (size_t)(b.out - out) + (b.n > 0);
}

struct bam_deflate *bam_deflate_new(int effort)
{
    struct bam_deflate *d = malloc(sizeof *d);
    if (d)
        d->effort = effort;
    return d;
}

void bam_deflate_free(struct bam_deflate *d)
{
    free(d);
}
