/* SPDX-License-Identifier: MIT */
/* The steps, in the order of bam_deflate():
 *
 *   parse     in[n] -> literals, and sequences: a number of literals, then a match
 *             (deflate_long.c; deflate_fast.c; deflate_fields.c, deflate_lanes.c)
 *   blocks    the segments at which a new pair of Huffman codes pays
 *   codes     per block: symbol counts -> two codes -> the block's header
 *   output    per block: literals and sequences -> bits */
#include <stdlib.h>
#include "codec/bam_deflate.h"
#include "codec/deflate_parse.h"

enum {
    END_OF_BLOCK = 256,           /* RFC 1951 section 3.2.5 */
    /* 15 are allowed. With 14, four literals always fit into the bit buffer. */
    MAX_BITS = 14,
    MAX_EXTRA_LEN = 5,
    MAX_EXTRA_DIST = 13,
    FEW_LITERALS = 3,             /* literals that are written with the match after them; most sequences have no more */

    N_CLASSES = 33,               /* 32 of literals, one of matches */
};
_Static_assert((int)BAM_DEFLATE_MAX <= (int)PARSE_MAX && (int)PARSE_MAX <= (int)HUFFMAN_MAX_COUNT,
               "any count is sorted");
_Static_assert(7 + 4 * MAX_BITS < 64, "four literals fit what flush() leaves; so do items of a header");
_Static_assert(7 + 2 * MAX_BITS + MAX_EXTRA_LEN + MAX_EXTRA_DIST < 64, "so does a match");
_Static_assert(MAX_BITS + MAX_EXTRA_LEN <= 24 && MAX_BITS <= 16,
               "words of match_bits and dist_bits hold a count above");

/* A DEFLATE block before its codes are made: one segment or several. */
struct block {
    uint32_t bits;                /* entropy of its symbols, in 1/256 bit */
    int32_t loss;                 /* bits that a common code for it and the next block costs, in 1/256 bit */
    uint16_t count[N_CLASSES];
};
_Static_assert(MAX_SEGMENTS <= UINT8_MAX, "segments are numbered by bytes");

struct bam_deflate {
    int effort;
    bool newer;                   /* the CPU has what NEWER_AVX2 names */
    struct deflate_parse parse;
    /* blocks */
    struct block block[MAX_SEGMENTS + 1];          /* by their first segments */
    uint8_t first[MAX_SEGMENTS + 1];               /* segments of the blocks, then the number of all segments */
    uint32_t n_blocks;
    /* codes of the present block */
    uint32_t litlen_freq[HUFFMAN_N_LITLEN];
    uint32_t dist_freq[HUFFMAN_N_DIST];
    code litlen[HUFFMAN_N_LITLEN];
    code dist[HUFFMAN_N_DIST];
    uint32_t match_bits[MAX_MATCH + 1];              /* for each length: its code and extra bits, and the number of
                                                      * these bits << 24 */
    uint32_t dist_bits[HUFFMAN_N_DIST];              /* for each distance symbol: its code, its length << 16, and its
                                                      * length with extra bits << 24 */
};
_Static_assert(sizeof(struct bam_deflate) <= 600 << 10, "one per thread, to stay in its L2 cache");

static void parse(struct bam_deflate *b, const uint8_t *in, uint32_t n)
{
    struct deflate_parse *d = &b->parse;
    struct parse p = {.in = in, .n = n};
    begin_anew(d, &p);
    if (n > FIRST + MARGIN) {
        bool fast = b->effort == BAM_DEFLATE_FAST;
        p.last = n - MARGIN;
        if (!deflate_long(d, &p, b->newer, fast) && !(!fast && deflate_fields(d, &p, b->newer)))
            (fast ? deflate_fast : deflate_lanes)(d, &p, b->newer);
    }
    put_rest(d, &p, n);
    put_mark(d);
}

/* ---------------------------------------------------------------- blocks */

/* Returns n log2(n) in 1/256 bit. */
static uint32_t n_log2_n(uint32_t n) { return n < 2 ? 0 : n * log2_256(n); }

/* Returns the bits that the symbols of both would take with a code of their own, in 1/256 bit. */
static uint32_t entropy(const uint16_t *a, const uint16_t *b)
{
    uint32_t total = 0, sum = 0;
    for (int i = 0; i < N_CLASSES; i++) {
        total += (uint32_t)a[i] + b[i];
        sum += n_log2_n((uint32_t)a[i] + b[i]);
    }
    return n_log2_n(total) - sum;
}

static void classify(const struct bam_deflate *d, uint32_t g, uint16_t *count)
{
    for (int c = 0; c < N_CLASSES - 1; c++) {
        count[c] = 0;
        for (int i = 0; i < 8; i++)
            count[c] = (uint16_t)(count[c] + d->parse.lit_freq[g][8 * c + i]);
    }
    count[N_CLASSES - 1] = (uint16_t)(d->parse.mark[g + 1].seq - d->parse.mark[g].seq);
}

/* Sets what the block loses if it is joined with the next one. The last block cannot be joined. */
static void set_loss(struct bam_deflate *d, uint32_t k)
{
    struct block *a = &d->block[d->first[k]], *b = &d->block[d->first[k + 1]];
    a->loss = INT32_MAX;
    if (k + 1 < d->n_blocks)
        a->loss = (int32_t)(entropy(a->count, b->count) - a->bits - b->bits);
}

/* Joins a block with the next one. */
static void join(struct bam_deflate *d, uint32_t k)
{
    struct block *a = &d->block[d->first[k]], *b = &d->block[d->first[k + 1]];
    a->bits += b->bits + (uint32_t)a->loss;
    for (int i = 0; i < N_CLASSES; i++)
        a->count[i] = (uint16_t)(a->count[i] + b->count[i]);
    memmove(d->first + k + 1, d->first + k + 2, d->n_blocks - k - 1);
    d->n_blocks--;
    set_loss(d, k);
    if (k > 0)
        set_loss(d, k - 1);
}

/* Makes blocks. At first, each segment is one. The two neighbours that lose least by a common code are joined, until
 * any two would lose more than another block costs. */
static void make_blocks(struct bam_deflate *d)
{
    static const uint16_t none[N_CLASSES] = {0};
    d->n_blocks = d->parse.n_segments;
    for (uint32_t g = 0; g < d->n_blocks; g++) {
        d->first[g] = (uint8_t)g;
        classify(d, g, d->block[g].count);
        d->block[g].bits = entropy(d->block[g].count, none);
    }
    d->first[d->n_blocks] = (uint8_t)d->n_blocks;
    for (uint32_t k = 0; k < d->n_blocks; k++)
        set_loss(d, k);
    for (uint32_t least = 0;; least = 0) {
        for (uint32_t k = 1; k < d->n_blocks; k++)
            if (d->block[d->first[k]].loss < d->block[d->first[least]].loss)
                least = k;
        if (d->block[d->first[least]].loss > SPLIT_BITS * 256)
            return;
        join(d, least);
    }
}

/* Counts the symbols of segments [from, to). */
static void count_symbols(struct bam_deflate *d, uint32_t from, uint32_t to)
{
    memset(d->litlen_freq, 0, sizeof d->litlen_freq);
    memset(d->dist_freq, 0, sizeof d->dist_freq);
    for (uint32_t g = from; g < to; g++)
        for (int i = 0; i < 256; i++)
            d->litlen_freq[i] += d->parse.lit_freq[g][i];
    d->litlen_freq[END_OF_BLOCK] = 1;
    for (uint32_t i = d->parse.mark[from].seq; i < d->parse.mark[to].seq; i++)
        if (d->parse.seq[i].len) {
            d->litlen_freq[256 + d->parse.seq[i].len_sym]++;
            d->dist_freq[d->parse.seq[i].dist_sym]++;
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

/* Stores 8 bytes, and leaves up to 7 bits in the buffer. */
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
        if (i % 4 == 3)
            flush(b);
    }
    flush(b);
}

static void make_match_codes(struct bam_deflate *d)
{
    for (uint32_t len = MIN_MATCH; len <= MAX_MATCH;) {
        uint32_t extra = len_extra_bits(len), c = d->litlen[len_symbol(len)], bits = code_len(c);
        uint32_t word = code_bits(c) | (bits + extra) << 24;
        uint32_t end = min_u32(len + (1u << extra), MAX_MATCH + (extra == 0));   /* MAX_MATCH has its own symbol */
        for (uint32_t rest = 0; len < end; rest++)
            d->match_bits[len++] = word | rest << bits;
    }
    for (uint32_t i = 0; i < HUFFMAN_N_DIST; i++)
        d->dist_bits[i] = d->dist[i] | (code_len(d->dist[i]) + dist_symbol_extra_bits(i)) << 24;
}

/* Puts n literals, at most max. The loop always runs max times; literals beyond n add no bits. */
INLINE void put_literals_of(const struct bam_deflate *d, struct bits *b, const uint8_t *lit, int32_t n, int32_t max)
{
    UNROLL(4)
    for (int32_t k = 0; k < max; k++)
        put_code(b, d->litlen[lit[k]] & (uint32_t)((k - n) >> 31));
}

INLINE void put_match_codes(const struct bam_deflate *d, struct bits *b, const struct seq *s)
{
    uint32_t len = d->match_bits[s->len], dist = d->dist_bits[s->dist_sym], n = len >> 24;
    uint64_t bits = code_bits(dist) | (uint32_t)s->dist_rest << (code_len(dist) & 31);
    bits = (len & 0xffffff) | bits << n;
    n += dist >> 24;
    if (b->n + n > 63)                             /* rare */
        flush(b);
    put(b, bits, n);
}

INLINE void write_seqs(const struct bam_deflate *d, uint32_t from, uint32_t to, struct bits *out)
{
    const struct deflate_parse *in = &d->parse;
    struct bits b = *out;
    const uint8_t *lit = in->lit + in->mark[from].lit;
    const struct seq *end = in->seq + in->mark[to].seq;
    for (const struct seq *s = in->seq + in->mark[from].seq; s < end; s++) {
        int32_t left = s->lits;
        for (; left > FEW_LITERALS; lit += 4, left -= 4) {
            put_literals_of(d, &b, lit, 4, 4);
            flush(&b);
        }
        put_literals_of(d, &b, lit, left, FEW_LITERALS);
        lit += left;
        if (s->len)
            put_match_codes(d, &b, s);
        flush(&b);
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

size_t bam_deflate_store(const uint8_t *in, size_t n, uint8_t *out, size_t cap)
{
    if (cap < BAM_DEFLATE_STORED + n)
        return 0;
    out[0] = 1;                                    /* final, type 00 */
    store_le16(out + 1, (uint16_t)n);
    store_le16(out + 3, (uint16_t)~n);
    memmove(out + BAM_DEFLATE_STORED, in, n);
    return BAM_DEFLATE_STORED + n;
}

static uint64_t data_bits(const struct bam_deflate *d)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < HUFFMAN_N_LITLEN; i++)
        bits += (uint64_t)d->litlen_freq[i] * code_len(d->litlen[i]);
    for (uint32_t i = 265; i < 285; i++)
        bits += (uint64_t)d->litlen_freq[i] * ((i - 261) / 4);
    for (uint32_t i = 0; i < HUFFMAN_N_DIST; i++)
        bits += (uint64_t)d->dist_freq[i] * (code_len(d->dist[i]) + dist_symbol_extra_bits(i));
    return bits;
}

size_t bam_deflate(struct bam_deflate *d, const uint8_t *in, size_t n, uint8_t *out, size_t cap)
{
    struct bits b = {.out = out};
    size_t room = cap < n + BAM_DEFLATE_STORED ? cap : n + BAM_DEFLATE_STORED;
    parse(d, in, (uint32_t)n);
    make_blocks(d);
    for (uint32_t k = 0; k < d->n_blocks; k++) {
        struct huffman_header h;
        uint32_t g = d->first[k], end = d->first[k + 1];
        count_symbols(d, g, end);
        huffman_code(d->litlen, d->litlen_freq, HUFFMAN_N_LITLEN, MAX_BITS);
        huffman_code(d->dist, d->dist_freq, HUFFMAN_N_DIST, MAX_BITS);
        size_t size = (size_t)((b.n + huffman_header(&h, d->litlen, d->dist) + data_bits(d) + 7) / 8);
        if ((size_t)(b.out - out) + size + 8 > room)
            return bam_deflate_store(in, n, out, cap);
        make_match_codes(d);
        write_header(&b, &h, k + 1 == d->n_blocks);
        (d->newer ? write_newer : write_older)(d, g, end, &b);
    }
    return (size_t)(b.out - out) + (b.n > 0);
}

struct bam_deflate *bam_deflate_new(int effort, bool portable)
{
    struct bam_deflate *d = calloc(1, sizeof *d);
    if (d) {
        d->effort = effort;
        d->newer = !portable && cpu_is_newer();
    }
    return d;
}

size_t bam_deflate_memory(void)
{
    return sizeof(struct bam_deflate);
}
