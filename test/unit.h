/* SPDX-License-Identifier: MIT */
/* The parts that unit tests share: cmocka, a seeded generator of numbers, growing
 * bytes, BAM records with given properties, memory in use, temporary files. */
#ifndef UNIT_TESTS_H
#define UNIT_TESTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include "bam/bam_record.h"
#include "test/must.h"

#undef stop    /* cmocka 2: a macro; one of our names */
/* cmocka 2 has a name for each sign. */
#ifdef assert_uint_in_range
#undef assert_in_range
#define assert_in_range assert_uint_in_range
#endif

#define N_OF(array) (sizeof(array) / sizeof *(array))

/* ---- numbers: splitmix64; the same seed gives the same numbers everywhere ----
 * C does not define which operand or argument is evaluated first. If a bound depends on the data, draw one number in
 * each declarator or statement; otherwise the test has other data with another compiler. */

static inline uint64_t unit_random(uint64_t *seed)
{
    uint64_t z = *seed += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* 0 .. below - 1 */
static inline uint32_t unit_below(uint64_t *seed, uint32_t below)
{
    return (uint32_t)(((unit_random(seed) >> 32) * below) >> 32);
}

static inline void unit_fill(uint64_t *seed, void *to, size_t n)
{
    uint8_t *p = to;
    for (size_t some; n > 0; n -= some, p += some) {
        uint64_t word = unit_random(seed);
        some = n < sizeof word ? n : sizeof word;
        memcpy(p, &word, some);
    }
}

/* ---- memory ---- */

struct unit_bytes {
    uint8_t *data;
    size_t n, max;
};

/* Room for n more bytes at the end, counted already. */
static inline uint8_t *unit_more(struct unit_bytes *b, size_t n)
{
    if (!b->data || n > b->max - b->n) {
        b->max = 2 * (b->n + n);
        b->data = realloc(b->data, b->max);
        MUST(b->data);
    }
    b->n += n;
    return b->data + b->n - n;
}

/* Bytes that are allocated now. Large allocations are complete pages, and each has 16 bytes of its own. 0: unknown. */
static inline size_t unit_allocated(void)
{
#ifdef M_ARENA_MAX
#if __GLIBC_PREREQ(2, 33)
    struct mallinfo2 m = mallinfo2();
#else
    struct mallinfo m = mallinfo();
#endif
    return (size_t)m.uordblks + (size_t)m.hblkhd;
#else
    return 0;
#endif
}

static inline void unit_append(struct unit_bytes *b, const void *from, size_t n)
{
    if (n)
        memcpy(unit_more(b, n), from, n);
}

static inline void unit_append_le32(struct unit_bytes *b, uint32_t v)
{
    store_le32(unit_more(b, 4), v);
}

static inline void unit_free(struct unit_bytes *b)
{
    free(b->data);
    memset(b, 0, sizeof *b);
}

/* ---- records ---- */

#define UNIT_OP(length, op) ((uint32_t)(length) << 4 | (uint32_t)(op))
enum { UNIT_M, UNIT_I, UNIT_D, UNIT_N, UNIT_S, UNIT_H, UNIT_P, UNIT_EQ, UNIT_X };

struct unit_record {
    int32_t ref_id, pos;
    uint16_t flag, bin;
    const char *name;
    const uint32_t *cigar;
    uint32_t n_cigar, seq_len;
    const void *aux;
    size_t n_aux;
};

/* Appends the record and returns its size. */
static inline size_t unit_append_record(struct unit_bytes *b, const struct unit_record *r)
{
    size_t name = strlen(r->name) + 1, seq = (r->seq_len + 1) / 2 + (size_t)r->seq_len;
    size_t size = BAM_FIXED + name + 4 * (size_t)r->n_cigar + seq + r->n_aux;
    struct bam_record *out = (struct bam_record *)unit_more(b, size);
    memset(out, 0, BAM_FIXED);
    store_le32(out->block_size, (uint32_t)size - 4);
    store_le32(out->ref_id, (uint32_t)r->ref_id);
    store_le32(out->pos, (uint32_t)r->pos);
    out->name_len = (uint8_t)name;
    out->mapq = 60;
    store_le16(out->bin, r->bin);
    store_le16(out->n_cigar, (uint16_t)r->n_cigar);
    store_le16(out->flag, r->flag);
    store_le32(out->seq_len, r->seq_len);
    store_le32(out->next_ref_id, UINT32_MAX);
    store_le32(out->next_pos, UINT32_MAX);
    uint8_t *p = out->data;
    memcpy(p, r->name, name);
    p += name;
    for (uint32_t i = 0; i < r->n_cigar; i++, p += 4)
        store_le32(p, r->cigar[i]);
    for (size_t i = 0; i < seq; i++)
        *p++ = (uint8_t)(i * 37 + (size_t)r->pos);
    if (r->n_aux)
        memcpy(p, r->aux, r->n_aux);
    return size;
}

/* A valid record with nothing special in it, of up to max_seq bases. Its bin is
 * right, because unmapped reads and one-base spans have the same bin: flag 4 is always set. */
static inline size_t unit_append_plain(struct unit_bytes *b, uint64_t *seed, uint32_t max_seq)
{
    static const uint8_t aux[] = "NMC\3RGZgroup1";
    char name[41] = "";
    uint32_t n_name = unit_below(seed, 40), seq = max_seq ? unit_below(seed, max_seq) : 0;
    uint32_t cigar[1] = {UNIT_OP(seq, UNIT_M)};
    for (uint32_t i = 0; i < n_name; i++)
        name[i] = (char)('!' + unit_below(seed, 94));
    struct unit_record r = {
        .ref_id = (int32_t)unit_below(seed, 4) - 1, .pos = (int32_t)unit_below(seed, 1 << 28),
        .flag = unit_below(seed, 2) ? 4 : 4 | 16, .name = name, .cigar = cigar,
        .n_cigar = unit_below(seed, 2), .seq_len = seq,
        .aux = aux, .n_aux = unit_below(seed, 2) ? sizeof aux : 0,
    };
    r.bin = (uint16_t)(4681 + (r.pos >> 14));
    return unit_append_record(b, &r);
}

/* The smallest possible record: 37 bytes. */
static inline size_t unit_append_smallest(struct unit_bytes *b, int32_t pos)
{
    struct unit_record r = {.ref_id = -1, .pos = pos, .flag = 4, .name = ""};
    return unit_append_record(b, &r);
}

/* ---- files ---- */

/* An open temporary file without a name. */
static inline int unit_temp_file(void)
{
    char name[] = "/tmp/unit-XXXXXX";
    int fd = mkstemp(name);
    MUST(fd >= 0);
    unlink(name);
    return fd;
}

static inline void unit_write(int fd, const void *data, size_t n)
{
    for (const uint8_t *p = data; n > 0;) {
        ssize_t done = write(fd, p, n);
        MUST(done > 0);
        p += done;
        n -= (size_t)done;
    }
}

/* All of an open file, from any position. */
static inline struct unit_bytes unit_read_file(int fd)
{
    struct unit_bytes b = {NULL, 0, 0};
    ssize_t n;
    do {
        enum { PIECE = 1 << 16 };
        size_t at = b.n;
        n = pread(fd, unit_more(&b, PIECE), PIECE, (off_t)at);
        MUST(n >= 0);
        b.n = at + (size_t)n;
    } while (n > 0);
    return b;
}

/* The path by which the process can open fd again. */
static inline const char *unit_fd_path(char path[64], int fd)
{
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return path;
}

#endif
