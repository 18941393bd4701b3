/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <lz4.h>
#include "order/bam_key.h"
#include "bam/bam_record.h"
#include "base/byte_buffer.h"
#include "base/endian_io.h"
#include "sort/record_pack.h"

enum stream { FIXED, NAMES, CIGARS, SEQS, QUALS, TAGS, N_STREAMS };
enum { COLUMNS = N_STREAMS, N_BUFFERS };         /* one buffer for each stream, and one for the columns of FIXED */

enum {
    SIZES = 4 + 4 + 16,          /* offset of the packed sizes */
    HEAD = SIZES + 4 * N_STREAMS,
    WORDS = BAM_FIXED / 4,       /* words of the fixed fields, 32 bits each */
    COPY = 32,                   /* bytes copied at once */
    ACCELERATION = 4,            /* acceleration of LZ4; 1 takes 5 % more CPU for 1-2 % less size */
    UNKNOWN = 0x80,              /* code of a value that is not in the alphabet */
    LEARN = 4096,                /* number of values that are examined first */
};
_Static_assert(BAM_FIXED % 4 == 0, "the fixed fields are words");
_Static_assert((int)RECORD_PACK_SLACK >= COPY, "copies overrun");

/* Reserves `size` bytes in a buffer. Code may write up to RECORD_PACK_SLACK bytes beyond the end of these buffers. */
static int reserve(struct byte_buffer *b, size_t size)
{
    return byte_buffer_reserve(b, size + RECORD_PACK_SLACK);
}

/* Copies n bytes. If there are COPY more bytes, it copies up to COPY - 1 of them, too, because most fields are
 * short. */
static inline void copy(uint8_t *to, const uint8_t *from, size_t n, size_t there)
{
    if (there < n + COPY)
        memcpy(to, from, n);
    else
        for (size_t i = 0; i < n; i += COPY)
            memcpy(to + i, from + i, COPY);
}

static void free_buffers(struct byte_buffer buffers[N_BUFFERS])
{
    for (int i = 0; i < N_BUFFERS; i++)
        free(buffers[i].p);
}

/* The bytes that a record adds to each stream, according to its fixed fields. */
struct stream_sizes { uint64_t n[N_STREAMS]; };

static inline struct stream_sizes stream_sizes_of(const uint8_t *record)
{
    const struct bam_record *r = bam_record_at(record);
    uint64_t seq = load_le32(r->seq_len), size = 4 + (uint64_t)load_le32(r->block_size);
    struct stream_sizes sizes = {{BAM_FIXED, r->name_len, 4u * load_le16(r->n_cigar), (seq + 1) / 2, seq, 0}};
    uint64_t before_tags = BAM_FIXED + sizes.n[NAMES] + sizes.n[CIGARS] + sizes.n[SEQS] + seq;
    sizes.n[TAGS] = size - before_tags;          /* a huge number if these are not the fields of a record */
    return sizes;
}

/* -------------------------------------------------------------- qualities */

/* The quality values that occur. A pack begins with the alphabet of the previous pack. */
struct alphabet {
    unsigned bits;               /* per value: 2, 4 or 6; 8: no alphabet */
    uint8_t code[256];           /* code of each value; UNKNOWN: the value is not in the alphabet */
    uint8_t value[16];
};

static void learn(struct alphabet *a, const uint8_t *q, size_t n)
{
    bool seen[256] = {0};
    unsigned k = 0;
    for (size_t i = 0; i < n; i++)
        seen[q[i]] = true;
    memset(a->code, UNKNOWN, sizeof a->code);
    memset(a->value, 0, sizeof a->value);
    for (unsigned v = 0; v < 256; v++) {
        if (seen[v] && k < 16) {
            a->value[k] = (uint8_t)v;
            a->code[v] = (uint8_t)k;
        }
        k += seen[v];
    }
    a->bits = k <= 4 ? 2 : k <= 16 ? 4 : 6;
}

/* Packs eight values into six bytes. The last step may run past the end of q and out by
 * 8 bytes. 0: a value exceeds 63. */
static size_t pack_6(uint8_t *q, size_t n, uint8_t *out)
{
    uint64_t all = 0;
    size_t k = 0;
    memset(q + n, 0, 8);
    for (size_t i = 0; i < n; i += 8, k += 6) {
        uint64_t w = load_le64(q + i);
        all |= w;
        w = (w & 0x003f003f003f003f) | (w & 0x3f003f003f003f00) >> 2;
        w = (w & 0x00000fff00000fff) | (w & 0x0fff00000fff0000) >> 4;
        w = (w & 0x0000000000ffffff) | (w & 0x00ffffff00000000) >> 8;
        store_le64(out + k, w);
    }
    return all & 0xc0c0c0c0c0c0c0c0 ? 0 : k;
}

static void unpack_6(const uint8_t *in, size_t n, uint8_t *q)
{
    for (size_t i = 0; i < n; i += 8, in += 6) {
        uint64_t w = load_le64(in);
        w = (w & 0x0000000000ffffff) | (w & 0x0000ffffff000000) << 8;
        w = (w & 0x00000fff00000fff) | (w & 0x00fff00000fff000) << 4;
        w = (w & 0x003f003f003f003f) | (w & 0x0fc00fc00fc00fc0) << 2;
        store_le64(q + i, w);
    }
}

/* Packs with the alphabet's 2 or 4 bits. The last step may run past the end of q by 4
 * bytes. 0: a value is not in the alphabet. */
static size_t pack_coded(const struct alphabet *a, uint8_t *q, size_t n, uint8_t *out)
{
    const uint8_t *code = a->code;
    unsigned all = 0;
    size_t k = 0;
    memset(q + n, a->value[0], 4);
    if (a->bits == 2) {
        for (size_t i = 0; i < n; i += 4) {
            unsigned c0 = code[q[i]], c1 = code[q[i + 1]], c2 = code[q[i + 2]], c3 = code[q[i + 3]];
            out[k++] = (uint8_t)(c0 | c1 << 2 | c2 << 4 | c3 << 6);
            all |= c0 | c1 | c2 | c3;
        }
    } else {
        for (size_t i = 0; i < n; i += 2) {
            unsigned c0 = code[q[i]], c1 = code[q[i + 1]];
            out[k++] = (uint8_t)(c0 | c1 << 4);
            all |= c0 | c1;
        }
    }
    return all & UNKNOWN ? 0 : k;
}

static void unpack_coded(const uint8_t *in, size_t n, unsigned bits, const uint8_t value[16], uint8_t *q)
{
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

/* Packs q[n]. If no packing can hold the values, sets bits to 8 and returns 0. */
static size_t pack_quals(struct alphabet *a, uint8_t *q, size_t n, uint8_t *out)
{
    size_t k = a->bits < 6 ? pack_coded(a, q, n, out) : 0;
    if (k > 0 || n == 0)
        return k;
    learn(a, q, n < LEARN ? n : LEARN);
    if (a->bits < 6)
        learn(a, q, n);                          /* learns from all values */
    k = a->bits < 6 ? pack_coded(a, q, n, out) : pack_6(q, n, out);
    if (k == 0)
        a->bits = 8;
    return k;
}

/* ---------------------------------------------------------------- packing */

struct record_packer {
    struct byte_buffer streams[N_BUFFERS];
    size_t bytes, records;
    struct alphabet alphabet;
    void *lz4;
};

struct record_packer *record_packer_new(void)
{
    struct record_packer *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->alphabet.bits = 8;                        /* no alphabet yet */
    if ((p->lz4 = malloc((size_t)LZ4_sizeofState())))
        return p;
    free(p);
    return NULL;
}

void record_packer_free(struct record_packer *p)
{
    if (!p)
        return;
    free_buffers(p->streams);
    free(p->lz4);
    free(p);
}

void record_packer_trim(struct record_packer *p)
{
    for (int i = 0; i < N_BUFFERS; i++)
        byte_buffer_trim(&p->streams[i], RECORD_PACK_SIZE + RECORD_PACK_SLACK);
    p->bytes = p->records = 0;
}

/* Together the streams are as large as their pack. They grow by doubling, so they may take twice that memory. */
size_t record_packer_memory(void)
{
    return 2 * (size_t)RECORD_PACK_SIZE + RECORD_PACK_SIZE / 2 + (size_t)LZ4_sizeofState();
}

int record_packer_add(struct record_packer *p, const uint8_t *record, size_t size)
{
    struct stream_sizes sizes = stream_sizes_of(record);
    const uint8_t *from = record;
    if (size > LZ4_MAX_INPUT_SIZE)
        return -1;
    for (int i = 0; i < N_STREAMS; i++) {
        struct byte_buffer *s = &p->streams[i];
        size_t n = (size_t)sizes.n[i];
        if (reserve(s, s->n + n) < 0)
            return -1;
        copy(s->p + s->n, from, n, size - (size_t)(from - record));
        s->n += n;
        from += n;
    }
    p->bytes += size;
    p->records++;
    return reserve(&p->streams[COLUMNS], p->streams[FIXED].n);
}

size_t record_packer_bytes(const struct record_packer *p)
{
    return p->bytes;
}

static size_t lz4_bound(size_t n)
{
    return n + n / 255 + 16;
}

size_t record_packer_bound(const struct record_packer *p)
{
    size_t bound = HEAD + RECORD_PACK_SLACK;
    for (int i = 0; i < N_STREAMS; i++)
        bound += lz4_bound(p->streams[i].n);
    return bound;
}

static size_t pack_lz4(struct record_packer *p, const uint8_t *in, size_t n, uint8_t *out)
{
    return n == 0 ? 0 : (size_t)LZ4_compress_fast_extState(p->lz4, (const char *)in, (char *)out, (int)n,
                                                           (int)lz4_bound(n), ACCELERATION);
}

static size_t pack_fixed(struct record_packer *p, uint8_t *out)
{
    const uint8_t *fixed = p->streams[FIXED].p;
    uint8_t *to = p->streams[COLUMNS].p;
    for (size_t c = 0; c < WORDS; c++) {
        uint32_t last = 0;
        for (size_t r = 0; r < p->records; r++, to += 4) {
            uint32_t v = load_le32(fixed + r * BAM_FIXED + 4 * c);
            store_le32(to, v - last);
            last = v;
        }
    }
    return pack_lz4(p, p->streams[COLUMNS].p, p->streams[FIXED].n, out);
}

static size_t pack_stream(struct record_packer *p, int i, uint8_t *out)
{
    struct byte_buffer *s = &p->streams[i];
    if (i == FIXED)
        return pack_fixed(p, out);
    if (i == SEQS && s->n > 0)
        memcpy(out, s->p, s->n);
    if (i == SEQS)
        return s->n;
    size_t n = i == QUALS ? pack_quals(&p->alphabet, s->p, s->n, out) : 0;
    return n > 0 ? n : pack_lz4(p, s->p, s->n, out);
}

size_t record_packer_pack(struct record_packer *p, uint8_t *out)
{
    uint8_t *at = out + HEAD;
    for (int i = 0; i < N_STREAMS; i++) {
        size_t n = pack_stream(p, i, at);
        store_le32(out + SIZES + 4 * i, (uint32_t)n);
        at += n;
        p->streams[i].n = 0;
    }
    store_le32(out, (uint32_t)p->records);
    store_le32(out + 4, p->alphabet.bits);
    memcpy(out + 8, p->alphabet.value, sizeof p->alphabet.value);
    p->records = p->bytes = 0;
    return (size_t)(at - out);
}

/* -------------------------------------------------------------- unpacking */

struct record_unpacker {
    struct byte_buffer streams[N_BUFFERS];
};

struct record_unpacker *record_unpacker_new(void)
{
    return calloc(1, sizeof(struct record_unpacker));
}

void record_unpacker_free(struct record_unpacker *u)
{
    if (!u)
        return;
    free_buffers(u->streams);
    free(u);
}

/* Unpacks to b, which has n bytes afterwards. */
static int unpack_lz4(struct byte_buffer *b, const uint8_t *in, uint32_t packed, uint64_t n)
{
    if (n > INT32_MAX || packed > INT32_MAX || reserve(b, n) < 0)
        return -1;
    return n == 0 || LZ4_decompress_safe((const char *)in, (char *)b->p, (int)packed, (int)n) == (int)n ? 0 : -1;
}

static int unpack_fixed(struct record_unpacker *u, const uint8_t *in, uint32_t packed, size_t records)
{
    struct byte_buffer *b = &u->streams[FIXED];
    uint64_t n = (uint64_t)records * BAM_FIXED;
    if (unpack_lz4(&u->streams[COLUMNS], in, packed, n) < 0 || reserve(b, n) < 0)
        return -1;
    const uint8_t *from = u->streams[COLUMNS].p;
    for (size_t c = 0; c < WORDS; c++) {
        uint32_t v = 0;
        for (size_t r = 0; r < records; r++, from += 4)
            store_le32(b->p + r * BAM_FIXED + 4 * c, v += load_le32(from));
    }
    return 0;
}

/* Sums up the bytes of each stream, according to the fixed fields. -1: these are not the fields of a record, or the
 * bytes are more than `room`. */
static int count_streams(const uint8_t *fixed, size_t records, size_t room, struct stream_sizes *sum)
{
    memset(sum, 0, sizeof *sum);
    uint64_t all = 0;
    for (size_t r = 0; r < records; r++) {
        struct stream_sizes sizes = stream_sizes_of(fixed + r * BAM_FIXED);
        if (sizes.n[TAGS] > UINT32_MAX)
            return -1;
        for (int i = 0; i < N_STREAMS; i++) {
            sum->n[i] += sizes.n[i];
            all += sizes.n[i];
        }
    }
    return all <= room ? 0 : -1;
}

static int unpack_quals(struct byte_buffer *b, const uint8_t *head, const uint8_t *in, uint32_t packed, uint64_t n)
{
    unsigned bits = load_le32(head + 4);
    if (bits == 8)
        return unpack_lz4(b, in, packed, n);
    if ((bits != 2 && bits != 4 && bits != 6) || packed != (bits == 6 ? (n + 7) / 8 * 6 : (n * bits + 7) / 8)
        || reserve(b, n) < 0)
        return -1;
    if (bits == 6)
        unpack_6(in, n, b->p);
    else
        unpack_coded(in, n, bits, head + 8, b->p);
    return 0;
}

/* Unpacks the streams other than the fixed fields. at: on entry, where each stream begins in the pack; on return, where
 * its bytes are. */
static int unpack_streams(struct record_unpacker *u, const uint8_t *head, const struct stream_sizes *sum,
                          const uint8_t *at[N_STREAMS])
{
    for (int i = NAMES; i < N_STREAMS; i++) {
        uint32_t packed = load_le32(head + SIZES + 4 * i);
        struct byte_buffer *b = &u->streams[i];
        if (i == SEQS ? packed != sum->n[i] : i == QUALS ? unpack_quals(b, head, at[i], packed, sum->n[i]) < 0
                                                         : unpack_lz4(b, at[i], packed, sum->n[i]) < 0)
            return -1;
        if (i != SEQS)
            at[i] = b->p;
    }
    at[FIXED] = u->streams[FIXED].p;
    return 0;
}

/* Reassembles the records from the streams. */
static void join(size_t records, const uint8_t *at[N_STREAMS], struct unpacked *to)
{
    for (; records > 0; records--) {
        struct stream_sizes sizes = stream_sizes_of(at[FIXED]);
        size_t begin = to->at;
        for (int i = 0; i < N_STREAMS; i++) {
            size_t n = (size_t)sizes.n[i];
            copy(to->base + to->at, at[i], n, to->end - to->at);
            at[i] += n;
            to->at += n;
        }
        to->keys->place = bam_key_place(begin, to->at - begin);
        to->keys++;
        to->n_keys--;
    }
}

size_t record_unpack(struct record_unpacker *u, const uint8_t *in, size_t n, struct unpacked *to)
{
    struct stream_sizes sum;
    const uint8_t *at[N_STREAMS];
    uint64_t end = HEAD;
    if (n < HEAD)
        return 0;
    for (int i = 0; i < N_STREAMS; i++) {
        at[i] = in + end;
        end += load_le32(in + SIZES + 4 * i);
        if (end > n)
            return 0;
    }
    size_t records = load_le32(in), room = to->end - to->at;
    if (records > to->n_keys || records > room / BAM_MIN_RECORD
        || unpack_fixed(u, at[FIXED], load_le32(in + SIZES), records) < 0
        || count_streams(u->streams[FIXED].p, records, room, &sum) < 0 || unpack_streams(u, in, &sum, at) < 0)
        return 0;
    join(records, at, to);
    return end;
}
