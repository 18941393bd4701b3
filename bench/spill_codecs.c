/* SPDX-License-Identifier: MIT */
/* Which codec pays for sorted runs in temporary files? CPU time of one thread for both ways, and
 * size, on units of whole records. A unit is what would be written, read and inflated at once.
 *
 *   make build/spill_codecs
 *   build/spill_codecs [-m MB] [-r ROUNDS] [-c PREFIX,PREFIX...] [-u KiB,KiB...] sorted.bam...
 *
 * LZ4, zstd and ISA-L take part where pkg-config finds them. Units go through a codec in batches;
 * each batch counts with its best round, so that what else the machine does drops out. Everything
 * inflated is compared with the input.
 *
 * The "split" codecs are LZ4 on rearranged units. Their letters say what they do:
 *
 *   unit:    n | sizes | SEQ, stored | LZ4( fixed | names | CIGARs | QUALs | tags )
 *   a        SEQ within the LZ4 part, too
 *   c        the fixed fields by columns of 32 bits, each value less the one before
 *   q        QUAL stored
 *   p        QUAL packed, and stored: to 2 or 4 bits a value where a unit has at most 4 or 16
 *            different ones, else to 6 where all are below 64
 *   P        the same, within the LZ4 part */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <htslib/bgzf.h>
#include <libdeflate.h>
#ifdef WITH_LZ4
#include <lz4.h>
#endif
#ifdef WITH_ZSTD
#include <zstd.h>
#endif
#ifdef WITH_ISAL
#include <isa-l/igzip_lib.h>
#endif
#include "bgzf_block.h"
#include "endian_io.h"

enum {
    UNIT_MAX = 512 << 10,
    SLACK = 4096,                /* beyond every buffer: copies overrun, splitting adds a header */
    OUT_MAX = UNIT_MAX + UNIT_MAX / 64 + SLACK,
    BATCH = 4 << 20,
    FIXED = 36,                  /* block_size and the fixed fields */
};

struct units {
    uint8_t *data;
    size_t *start;               /* n + 1 of them */
    size_t n;
};

struct codec {
    const char *name;
    int level;
    size_t unit_max;
    void *(*open)(int level);
    size_t (*deflate)(void *state, int level, const uint8_t *in, size_t n, uint8_t *out);
    bool (*inflate)(void *state, int level, const uint8_t *in, size_t size, uint8_t *out, size_t n);
};

static void die(const char *what)
{
    fprintf(stderr, "spill_codecs: %s\n", what);
    exit(1);
}

static void *room(size_t n)
{
    void *p = malloc(n);
    if (!p)
        die("out of memory");
    memset(p, 1, n);             /* page faults are nobody's cost */
    return p;
}

/* ---- codecs of libraries ---- */

static size_t raw_deflate(void *state, int level, const uint8_t *in, size_t n, uint8_t *out)
{
    (void)state, (void)level;
    memcpy(out, in, n);
    return n;
}

static bool raw_inflate(void *state, int level, const uint8_t *in, size_t size, uint8_t *out, size_t n)
{
    (void)state, (void)level;
    memcpy(out, in, size);
    return size == n;
}

static void *ours_open(int level)
{
    return bgzf_codec_new(level);
}

static size_t ours_deflate(void *state, int level, const uint8_t *in, size_t n, uint8_t *out)
{
    (void)level;
    return bgzf_block_deflate(state, in, (uint32_t)n, out);
}

static bool ours_inflate(void *state, int level, const uint8_t *in, size_t size, uint8_t *out, size_t n)
{
    struct bgzf_frame frame;
    (void)level;
    return bgzf_block_frame(in, size, &frame) == BGZF_OK && frame.inflated_size == n
        && bgzf_block_inflate(state, in, &frame, out) == BGZF_OK;
}

struct lib { struct libdeflate_compressor *c; struct libdeflate_decompressor *d; };

static void *lib_open(int level)
{
    struct lib *s = room(sizeof *s);
    s->c = libdeflate_alloc_compressor(level);
    s->d = libdeflate_alloc_decompressor();
    return s;
}

static size_t lib_deflate(void *state, int level, const uint8_t *in, size_t n, uint8_t *out)
{
    (void)level;
    return libdeflate_deflate_compress(((struct lib *)state)->c, in, n, out, OUT_MAX);
}

static bool lib_inflate(void *state, int level, const uint8_t *in, size_t size, uint8_t *out, size_t n)
{
    (void)level;
    return !libdeflate_deflate_decompress(((struct lib *)state)->d, in, size, out, n, NULL);
}

#ifdef WITH_ZSTD
struct zstd { ZSTD_CCtx *c; ZSTD_DCtx *d; };

static void *zstd_open(int level)
{
    struct zstd *s = room(sizeof *s);
    s->c = ZSTD_createCCtx();
    s->d = ZSTD_createDCtx();
    ZSTD_CCtx_setParameter(s->c, ZSTD_c_compressionLevel, level);
    return s;
}

static size_t zstd_deflate(void *state, int level, const uint8_t *in, size_t n, uint8_t *out)
{
    (void)level;
    size_t size = ZSTD_compress2(((struct zstd *)state)->c, out, OUT_MAX, in, n);
    return ZSTD_isError(size) ? 0 : size;
}

static bool zstd_inflate(void *state, int level, const uint8_t *in, size_t size, uint8_t *out, size_t n)
{
    (void)level;
    return ZSTD_decompressDCtx(((struct zstd *)state)->d, out, n, in, size) == n;
}
#endif

#ifdef WITH_ISAL
/* Level -1: level 0 with a Huffman code made from the first unit, and kept. */
struct isal {
    struct isal_zstream z;
    struct inflate_state i;
    struct isal_hufftables huff;
    bool have_huff;
    uint8_t buf[ISAL_DEF_LVL1_DEFAULT];
};

static void *isal_open(int level)
{
    struct isal *s = room(sizeof *s);
    (void)level;
    s->have_huff = false;
    return s;
}

static size_t isal_deflate_unit(void *state, int level, const uint8_t *in, size_t n, uint8_t *out)
{
    struct isal *s = state;
    isal_deflate_stateless_init(&s->z);
    if (level < 0 && !s->have_huff) {
        static struct isal_huff_histogram h;
        isal_update_histogram((uint8_t *)in, (int)n, &h);
        if (isal_create_hufftables(&s->huff, &h))
            return 0;
        s->have_huff = true;
    }
    if (level < 0)
        isal_deflate_set_hufftables(&s->z, &s->huff, IGZIP_HUFFTABLE_CUSTOM);
    s->z.level = level > 0 ? (uint32_t)level : 0;
    s->z.level_buf = level > 0 ? s->buf : NULL;
    s->z.level_buf_size = level > 0 ? sizeof s->buf : 0;
    s->z.gzip_flag = IGZIP_DEFLATE;
    s->z.flush = NO_FLUSH;
    s->z.end_of_stream = 1;
    s->z.next_in = (uint8_t *)in;
    s->z.avail_in = (uint32_t)n;
    s->z.next_out = out;
    s->z.avail_out = OUT_MAX;
    return isal_deflate_stateless(&s->z) == COMP_OK ? s->z.total_out : 0;
}

static bool isal_inflate_unit(void *state, int level, const uint8_t *in, size_t size, uint8_t *out, size_t n)
{
    struct inflate_state *i = &((struct isal *)state)->i;
    (void)level;
    isal_inflate_init(i);
    i->crc_flag = ISAL_DEFLATE;
    i->next_in = (uint8_t *)in;
    i->avail_in = (uint32_t)size;
    i->next_out = out;
    i->avail_out = (uint32_t)n;
    return isal_inflate_stateless(i) == ISAL_DECOMP_OK && i->total_out == n;
}
#endif

#ifdef WITH_LZ4
static void *lz4_open(int level)
{
    (void)level;
    return room((size_t)LZ4_sizeofState());
}

static size_t lz4_deflate(void *state, int level, const uint8_t *in, size_t n, uint8_t *out)
{
    return (size_t)LZ4_compress_fast_extState(state, (const char *)in, (char *)out, (int)n, OUT_MAX, level);
}

static bool lz4_inflate(void *state, int level, const uint8_t *in, size_t size, uint8_t *out, size_t n)
{
    (void)state, (void)level;
    return LZ4_decompress_safe((const char *)in, (char *)out, (int)size, (int)n) == (int)n;
}

/* ---- LZ4 on rearranged units: trusts what it reads, as only a benchmark may ---- */

enum { NAMES, CIGARS, QUALS, TAGS, SEQS, N_STREAMS };
enum { SEQ_TOO = 1, COLUMNS = 2, QUAL_RAW = 4, QUAL_PACK = 8, QUAL_PACK_LZ4 = 16, ACCEL = 8 };

/* The qualities there are; a unit begins with those of the unit before. */
struct alphabet {
    int bits;                    /* a value takes 2, 4, 6 or 8 */
    uint8_t code[256];           /* UNKNOWN if none */
    uint8_t value[16];
};

struct split {
    void *lz4;
    uint8_t *stream[N_STREAMS], *fixed, *joined, *packed;
    struct alphabet alphabet;
};

static void *split_open(int level)
{
    struct split *s = room(sizeof *s);
    (void)level;
    s->lz4 = lz4_open(1);
    s->alphabet.bits = 8;        /* none yet */
    for (int i = 0; i < N_STREAMS; i++)
        s->stream[i] = room(UNIT_MAX + SLACK);
    s->fixed = room(UNIT_MAX + SLACK);
    s->packed = room(UNIT_MAX + SLACK);
    s->joined = room(OUT_MAX + SLACK);
    return s;
}

/* Copies n bytes and up to 31 more. */
static inline void copy(uint8_t *to, const uint8_t *from, size_t n)
{
    for (size_t i = 0; i < n; i += 32)
        memcpy(to + i, from + i, 32);
}

struct lengths { uint32_t of[N_STREAMS]; };

/* What follows the fixed fields f of a record. */
static inline struct lengths record_lengths(const uint8_t *f)
{
    struct lengths l;
    uint32_t l_seq = load_le32(f + 20);
    l.of[NAMES] = f[12];
    l.of[CIGARS] = 4u * load_le16(f + 16);
    l.of[SEQS] = (l_seq + 1) / 2;
    l.of[QUALS] = l_seq;
    l.of[TAGS] = load_le32(f) - 32 - l.of[NAMES] - l.of[CIGARS] - l.of[SEQS] - l.of[QUALS];
    return l;
}

enum { UNKNOWN = 0x80 };

static void learn(struct alphabet *a, const uint8_t *q, size_t n)
{
    uint8_t seen[256] = {0};
    for (size_t i = 0; i < n; i++)
        seen[q[i]] = 1;
    int k = 0;
    memset(a->code, UNKNOWN, sizeof a->code);
    memset(a->value, 0, sizeof a->value);
    for (int v = 0; v < 256; v++)
        if (seen[v]) {
            if (k < 16) {
                a->value[k] = (uint8_t)v;
                a->code[v] = (uint8_t)k;
            }
            k++;
        }
    a->bits = k <= 4 ? 2 : k <= 16 ? 4 : 6;
}

/* 8 values to 6 bytes. Returns the size; 0 if a value exceeds 63. */
static size_t pack_6(uint8_t *q, size_t n, uint8_t *out)
{
    uint64_t all = 0;
    size_t k = 0;
    memset(q + n, 0, 8);
    for (size_t i = 0; i < n; i += 8, k += 6) {
        uint64_t w = (uint64_t)load_le32(q + i + 4) << 32 | load_le32(q + i);
        all |= w;
        w = (w & 0x003f003f003f003f) | (w & 0x3f003f003f003f00) >> 2;
        w = (w & 0x00000fff00000fff) | (w & 0x0fff00000fff0000) >> 4;
        w = (w & 0x0000000000ffffff) | (w & 0x00ffffff00000000) >> 8;
        store_le32(out + k, (uint32_t)w);
        store_le32(out + k + 4, (uint32_t)(w >> 32));
    }
    return all & 0xc0c0c0c0c0c0c0c0 ? 0 : k;
}

static void unpack_6(const uint8_t *in, size_t n, uint8_t *q)
{
    for (size_t i = 0; i < n; i += 8, in += 6) {
        uint64_t w = (uint64_t)load_le16(in + 4) << 32 | load_le32(in);
        w = (w & 0x0000000000ffffff) | (w & 0x0000ffffff000000) << 8;
        w = (w & 0x00000fff00000fff) | (w & 0x00fff00000fff000) << 4;
        w = (w & 0x003f003f003f003f) | (w & 0x0fc00fc00fc00fc0) << 2;
        store_le32(q + i, (uint32_t)w);
        store_le32(q + i + 4, (uint32_t)(w >> 32));
    }
}

/* Returns the size; 0 if there is a value that the alphabet lacks. */
static size_t pack_with(const struct alphabet *a, uint8_t *q, size_t n, uint8_t *out)
{
    const uint8_t *code = a->code;
    unsigned all = 0;
    size_t k = 0, i = 0;
    memset(q + n, a->value[0], 4);
    if (a->bits == 2)
        for (; i < n; i += 4) {
            unsigned b = code[q[i]] | code[q[i + 1]] << 2 | code[q[i + 2]] << 4 | code[q[i + 3]] << 6;
            out[k++] = (uint8_t)b;
            all |= (code[q[i]] | code[q[i + 1]] | code[q[i + 2]] | code[q[i + 3]]) << 24;
        }
    else
        for (; i < n; i += 2) {
            unsigned b = code[q[i]] | code[q[i + 1]] << 4;
            all |= (unsigned)(code[q[i]] | code[q[i + 1]]) << 24;
            out[k++] = (uint8_t)b;
        }
    return all >> 24 & UNKNOWN ? 0 : k;
}

static size_t pack(struct alphabet *a, uint8_t *q, size_t n, uint8_t *out)
{
    size_t k = a->bits < 6 ? pack_with(a, q, n, out) : 0;
    if (k == 0 && n > 0) {
        learn(a, q, n < 4096 ? n : 4096);
        if (a->bits < 6)
            learn(a, q, n);
        k = a->bits < 6 ? pack_with(a, q, n, out) : pack_6(q, n, out);
        if (k == 0)
            a->bits = 8;
    }
    return k;
}

/* Bytes of n values packed by pack(). */
static size_t packed_size(size_t n, int bits)
{
    return bits == 6 ? (n + 7) / 8 * 6 : (n * (size_t)bits + 7) / 8;
}

static void unpack(const uint8_t *in, size_t n, int bits, const uint8_t value[16], uint8_t *q)
{
    if (bits == 6) {
        unpack_6(in, n, q);
        return;
    }
    uint32_t table[256];
    for (uint32_t b = 0; b < 256; b++)
        table[b] = bits == 2 ? value[b & 3] | (uint32_t)value[b >> 2 & 3] << 8
                                   | (uint32_t)value[b >> 4 & 3] << 16 | (uint32_t)value[b >> 6] << 24
                             : value[b & 15] | (uint32_t)value[b >> 4] << 8;
    if (bits == 2)
        for (size_t i = 0; i < n; i += 4)
            store_le32(q + i, table[*in++]);
    else
        for (size_t i = 0; i < n; i += 2)
            store_le16(q + i, (uint16_t)table[*in++]);
}

/* Header: records, bits of QUAL, 16 values, sizes of the streams as they are in the unit. */
enum { HEAD = 4 + 4 + 16 + 4 * N_STREAMS };

static size_t split_deflate(void *state, int level, const uint8_t *in, size_t n, uint8_t *out)
{
    struct split *s = state;
    int how = level >> ACCEL, accel = level & ((1 << ACCEL) - 1);
    uint8_t *at[N_STREAMS], *f = s->fixed, *raw = out + HEAD;
    size_t size[N_STREAMS], records = 0;
    for (int i = 0; i < N_STREAMS; i++)
        at[i] = s->stream[i];
    if (!(how & SEQ_TOO))
        at[SEQS] = raw;          /* straight to where it is stored */
    for (const uint8_t *p = in, *end = in + n; p < end; records++) {
        struct lengths l = record_lengths(p);
        memcpy(f, p, FIXED);
        f += FIXED;
        p += FIXED;
        static const uint8_t order[] = {NAMES, CIGARS, SEQS, QUALS, TAGS};
        for (int i = 0; i < N_STREAMS; i++) {
            int k = order[i];
            copy(at[k], p, l.of[k]);
            at[k] += l.of[k];
            p += l.of[k];
        }
    }
    for (int i = 0; i < N_STREAMS; i++)
        size[i] = (size_t)(at[i] - (i == SEQS && !(how & SEQ_TOO) ? raw : s->stream[i]));
    uint8_t *j = s->joined;
    if (how & COLUMNS)
        for (int c = 0; c < FIXED / 4; c++) {
            uint32_t last = 0;
            for (size_t r = 0; r < records; r++, j += 4) {
                uint32_t v = load_le32(s->fixed + r * FIXED + 4 * c);
                store_le32(j, v - last);
                last = v;
            }
        }
    else
        memcpy(j, s->fixed, records * FIXED), j += records * FIXED;
    if (!(how & SEQ_TOO))
        raw += size[SEQS];
    const uint8_t *q = s->stream[QUALS];
    int bits = 8;
    size_t q_size = size[QUALS];
    if (how & (QUAL_PACK | QUAL_PACK_LZ4)) {
        size_t k = pack(&s->alphabet, s->stream[QUALS], q_size, s->packed);
        bits = s->alphabet.bits;
        if (bits < 8) {
            q = s->packed;
            q_size = k;
        }
    }
    for (int i = 0; i < N_STREAMS; i++) {
        if (i == QUALS && ((how & QUAL_RAW) || (bits < 8 && (how & QUAL_PACK)))) {
            memcpy(raw, q, q_size);
            raw += q_size;
        } else if (i == QUALS) {
            memcpy(j, q, q_size);
            j += q_size;
        } else if (i != SEQS || (how & SEQ_TOO)) {
            memcpy(j, s->stream[i], size[i]);
            j += size[i];
        }
    }
    store_le32(out, (uint32_t)records);
    store_le32(out + 4, (uint32_t)bits);
    memcpy(out + 8, s->alphabet.value, sizeof s->alphabet.value);
    for (int i = 0; i < N_STREAMS; i++)
        store_le32(out + 24 + 4 * i, (uint32_t)size[i]);
    size_t head = (size_t)(raw - out);
    return head + lz4_deflate(s->lz4, accel, s->joined, (size_t)(j - s->joined), raw);
}

static bool split_inflate(void *state, int level, const uint8_t *in, size_t in_size, uint8_t *out, size_t n)
{
    struct split *s = state;
    int how = level >> ACCEL;
    const uint8_t *raw = in + HEAD, *at[N_STREAMS], *f;
    size_t records = load_le32(in), size[N_STREAMS], joined = records * FIXED, stored = 0;
    int bits = (int)load_le32(in + 4);
    for (int i = 0; i < N_STREAMS; i++) {
        size[i] = load_le32(in + 24 + 4 * i);
        size_t held = i == QUALS ? packed_size(size[i], bits) : size[i];
        bool is_raw = i == SEQS ? !(how & SEQ_TOO)
                                : i == QUALS && ((how & QUAL_RAW) || (bits < 8 && (how & QUAL_PACK)));
        *(is_raw ? &stored : &joined) += held;
    }
    if (!lz4_inflate(s->lz4, 1, raw + stored, in_size - HEAD - stored, s->joined, joined))
        return false;
    const uint8_t *j = s->joined;
    if (how & COLUMNS) {
        for (int c = 0; c < FIXED / 4; c++) {
            uint32_t v = 0;
            for (size_t r = 0; r < records; r++, j += 4)
                store_le32(s->fixed + r * FIXED + 4 * c, v += load_le32(j));
        }
        f = s->fixed;
    } else {
        f = j;
        j += records * FIXED;
    }
    if (!(how & SEQ_TOO)) {
        at[SEQS] = raw;
        raw += size[SEQS];
    }
    for (int i = 0; i < N_STREAMS; i++) {
        if (i == QUALS && ((how & QUAL_RAW) || (bits < 8 && (how & QUAL_PACK))))
            at[i] = raw;
        else if (i != SEQS || (how & SEQ_TOO)) {
            at[i] = j;
            j += i == QUALS ? packed_size(size[i], bits) : size[i];
        }
    }
    if (bits < 8) {
        unpack(at[QUALS], size[QUALS], bits, in + 8, s->packed);
        at[QUALS] = s->packed;
    }
    uint8_t *p = out;
    for (size_t r = 0; r < records; r++, f += FIXED) {
        struct lengths l = record_lengths(f);
        memcpy(p, f, FIXED);
        p += FIXED;
        static const uint8_t order[] = {NAMES, CIGARS, SEQS, QUALS, TAGS};
        for (int i = 0; i < N_STREAMS; i++) {
            int k = order[i];
            copy(p, at[k], l.of[k]);
            at[k] += l.of[k];
            p += l.of[k];
        }
    }
    return (size_t)(p - out) == n;
}
#endif

static const struct codec codecs[] = {
    {"memcpy", 0, UNIT_MAX, NULL, raw_deflate, raw_inflate},
#ifdef WITH_LZ4
#define LZ4(a) {"lz4 -" #a, a, UNIT_MAX, lz4_open, lz4_deflate, lz4_inflate}
#define SPLIT(letters, a, how) \
    {"split" letters " -" #a, (how) << ACCEL | a, UNIT_MAX, split_open, split_deflate, split_inflate}
    LZ4(1), LZ4(2), LZ4(4), LZ4(8), LZ4(16), LZ4(32),
    SPLIT(".a", 1, SEQ_TOO), SPLIT(".ac", 1, SEQ_TOO | COLUMNS),
    SPLIT(".", 1, 0), SPLIT(".", 4, 0),
    SPLIT(".c", 1, COLUMNS), SPLIT(".c", 4, COLUMNS), SPLIT(".c", 16, COLUMNS),
    SPLIT(".cq", 1, COLUMNS | QUAL_RAW), SPLIT(".cq", 4, COLUMNS | QUAL_RAW),
    SPLIT(".cp", 1, COLUMNS | QUAL_PACK), SPLIT(".cp", 4, COLUMNS | QUAL_PACK), SPLIT(".cp", 16, COLUMNS | QUAL_PACK),
    SPLIT(".cP", 1, COLUMNS | QUAL_PACK_LZ4), SPLIT(".cP", 4, COLUMNS | QUAL_PACK_LZ4),
#endif
#ifdef WITH_ZSTD
#define ZSTD(l) {"zstd " #l, l, UNIT_MAX, zstd_open, zstd_deflate, zstd_inflate}
    ZSTD(1), ZSTD(-1), ZSTD(-3), ZSTD(-5), ZSTD(-10),
#endif
    {"libdeflate 1", 1, UNIT_MAX, lib_open, lib_deflate, lib_inflate},
#ifdef WITH_ISAL
    {"igzip 0", 0, UNIT_MAX, isal_open, isal_deflate_unit, isal_inflate_unit},
    {"igzip 0 own code", -1, UNIT_MAX, isal_open, isal_deflate_unit, isal_inflate_unit},
    {"igzip 1", 1, UNIT_MAX, isal_open, isal_deflate_unit, isal_inflate_unit},
#endif
    {"ours 1", 1, BGZF_FILL, ours_open, ours_deflate, ours_inflate},
};

/* ---- the input ---- */

static void need(BGZF *fp, void *to, size_t n)
{
    if (bgzf_read(fp, to, n) != (ssize_t)n)
        die("short header");
}

static void skip(BGZF *fp, size_t n)
{
    for (uint8_t buf[4096]; n > 0; n -= n < sizeof buf ? n : sizeof buf)
        need(fp, buf, n < sizeof buf ? n : sizeof buf);
}

static uint32_t read_u32(BGZF *fp)
{
    uint8_t b[4];
    need(fp, b, 4);
    return load_le32(b);
}

/* The first records of a file, max bytes at most. */
static struct units load_records(const char *path, size_t max)
{
    struct units u = {.data = room(max + SLACK)};
    BGZF *fp = bgzf_open(path, "r");
    if (!fp)
        die(path);
    skip(fp, 4);
    skip(fp, read_u32(fp));
    for (uint32_t n = read_u32(fp); n > 0; n--) {
        skip(fp, read_u32(fp));
        skip(fp, 4);
    }
    ssize_t got = bgzf_read(fp, u.data, max);
    bgzf_close(fp);
    u.n = got > 0 ? (size_t)got : 0;
    u.start = room((u.n / 1024 + 2) * sizeof *u.start);
    return u;
}

/* Units of whole records; what is no whole record at the end is dropped. */
static void cut(struct units *u, size_t size, size_t unit)
{
    size_t from = 0, at = 0;
    u->n = 0;
    while (at + 4 <= size) {
        size_t len = 4 + (size_t)load_le32(u->data + at);
        if (len > unit)
            die("a record exceeds a unit");
        if (at + len > size)
            break;
        if (at + len - from > unit) {
            u->start[u->n++] = from;
            from = at;
        }
        at += len;
    }
    if (at > from)
        u->start[u->n++] = from;
    u->start[u->n] = at;
}

/* ---- measuring ---- */

static double cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void bench(const struct codec *c, const struct units *u, int rounds)
{
    static uint8_t *out, *back;
    static size_t size[BATCH / 1024];
    if (!out) {
        out = room(2 * BATCH + OUT_MAX);
        back = room(UNIT_MAX + SLACK);
    }
    void *state = c->open ? c->open(c->level) : NULL;
    double deflate = 0, inflate = 0;
    uint64_t total = 0, packed = 0;
    for (size_t from = 0, to; from < u->n; from = to) {
        double best[2] = {1e9, 1e9};
        for (to = from; to < u->n && u->start[to + 1] - u->start[from] <= BATCH; to++)
            ;
        for (int r = 0; r < rounds; r++) {
            uint8_t *o = out;
            double t = cpu();
            for (size_t k = from; k < to; k++) {
                size[k - from] = c->deflate(state, c->level, u->data + u->start[k], u->start[k + 1] - u->start[k], o);
                o += size[k - from];
            }
            t = cpu() - t;
            best[0] = t < best[0] ? t : best[0];
            o = out;
            t = cpu();
            for (size_t k = from; k < to; k++) {
                if (!c->inflate(state, c->level, o, size[k - from], back, u->start[k + 1] - u->start[k]))
                    die(c->name);
                o += size[k - from];
            }
            t = cpu() - t;
            best[1] = t < best[1] ? t : best[1];
        }
        uint8_t *o = out;
        for (size_t k = from; k < to; k++) {
            size_t n = u->start[k + 1] - u->start[k];
            memset(back, 0x55, n);
            if (size[k - from] == 0 || !c->inflate(state, c->level, o, size[k - from], back, n)
                || memcmp(back, u->data + u->start[k], n))
                die(c->name);
            o += size[k - from];
            packed += size[k - from];
            total += n;
        }
        deflate += best[0];
        inflate += best[1];
    }
    printf("  %-17s %8.0f %8.0f %8.3f %8.3f %8.3f %8.3f\n", c->name, (double)total / deflate * 1e-6,
           (double)total / inflate * 1e-6, (double)total / (double)packed, deflate / (double)total * 1e9,
           inflate / (double)total * 1e9, (deflate + inflate) / (double)total * 1e9);
    fflush(stdout);
}

static bool wanted(const char *name, const char *list)
{
    for (const char *p = list, *end; p && *p; p = *end ? end + 1 : end) {
        end = p + strcspn(p, ",");
        if (strncmp(name, p, (size_t)(end - p)) == 0)
            return true;
    }
    return !list;
}

int main(int argc, char **argv)
{
    size_t max = 300u << 20;
    int rounds = 3;
    const char *list = NULL, *sizes = "64,128,256";
    for (int opt; (opt = getopt(argc, argv, "m:r:c:u:")) != -1;)
        switch (opt) {
        case 'm': max = strtoul(optarg, NULL, 10) << 20; break;
        case 'r': rounds = atoi(optarg); break;
        case 'c': list = optarg; break;
        case 'u': sizes = optarg; break;
        default: die("usage: spill_codecs [-m MB] [-r ROUNDS] [-c PREFIX,...] [-u KiB,...] BAM...");
        }
    for (int i = optind; i < argc; i++) {
        struct units u = load_records(argv[i], max);
        size_t size = u.n;
        for (const char *p = sizes; *p;) {
            char *end;
            size_t unit = strtoul(p, &end, 10) << 10;
            p = *end ? end + 1 : end;
            if (unit < 4096 || unit > UNIT_MAX)
                die("units are of 4 to 512 KiB");
            /* At 64 KiB as much as a BGZF block takes, so that ours can take part. */
            cut(&u, size, unit == 64 << 10 ? BGZF_FILL : unit);
            printf("%s, %zu KiB, %.0f MB\n  %-17s %8s %8s %8s %8s %8s %8s\n", argv[i], unit >> 10,
                   (double)size * 1e-6, "codec", "in MB/s", "out MB/s", "ratio", "in s/GB", "out s/GB", "s/GB");
            for (size_t c = 0; c < sizeof codecs / sizeof *codecs; c++)
                if (wanted(codecs[c].name, list) && u.start[1] <= codecs[c].unit_max
                    && (codecs[c].unit_max == UNIT_MAX || unit <= 64 << 10))
                    bench(&codecs[c], &u, rounds);
        }
        free(u.start);
        free(u.data);
    }
    return 0;
}
