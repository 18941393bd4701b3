/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <lz4.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "endian_io.h"
#include "spill_slice.h"

enum {
    HASH = 8,                    /* bytes of the checksum */
    UNIT_HEAD = 4,
    VARINT_MAX = 10,
    /* LZ4's speed for size: bench/RESULTS.md. */
    ACCELERATION = 8,
};

struct spill_packer {
    size_t slice_size;
    uint8_t *records;            /* of the slice being made */
    size_t records_max, bottom, n;
    uint8_t *packed;             /* its keys, behind room for the header, then the units */
    size_t packed_max, keys_end;
    uint64_t last;               /* sort key added last */
};

/* The most bytes that the packed form of these can take. */
static size_t packed_bound(size_t record_bytes, size_t n)
{
    size_t units = record_bytes / SPILL_UNIT + 1;
    return SPILL_SLICE_HEADER + n * VARINT_MAX + units * (UNIT_HEAD + (size_t)LZ4_COMPRESSBOUND(SPILL_UNIT));
}

/* Smallest records and their keys in slice_size bytes. */
static size_t most_records(size_t slice_size)
{
    return slice_size / (BAM_MIN_RECORD + sizeof(struct bam_key)) + 1;
}

static int grow(uint8_t **p, size_t *max, size_t wanted)
{
    if (wanted <= *max)
        return 0;
    uint8_t *grown = realloc(*p, wanted);
    if (!grown)
        return -1;
    *p = grown;
    *max = wanted;
    return 0;
}

static void empty(struct spill_packer *p)
{
    p->bottom = p->n = p->last = 0;
    p->keys_end = SPILL_SLICE_HEADER;
}

struct spill_packer *spill_packer_new(size_t slice_size)
{
    struct spill_packer *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->slice_size = slice_size;
    empty(p);
    if (grow(&p->records, &p->records_max, slice_size) == 0
        && grow(&p->packed, &p->packed_max, packed_bound(slice_size, most_records(slice_size))) == 0)
        return p;
    spill_packer_free(p);
    return NULL;
}

void spill_packer_free(struct spill_packer *p)
{
    if (!p)
        return;
    free(p->records);
    free(p->packed);
    free(p);
}

size_t spill_packer_memory(size_t slice_size)
{
    return slice_size + packed_bound(slice_size, most_records(slice_size));
}

bool spill_packer_empty(const struct spill_packer *p)
{
    return p->n == 0;
}

static uint8_t *put_varint(uint8_t *out, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        *out++ = (uint8_t)v | 0x80;
    *out++ = (uint8_t)v;
    return out;
}

static size_t size_in_memory(uint64_t record_bytes, uint64_t n)
{
    size_t align = sizeof(struct bam_key);
    return (record_bytes + align - 1) / align * align + n * sizeof(struct bam_key);
}

int spill_packer_add(struct spill_packer *p, uint64_t sort_key, const uint8_t *record, size_t size)
{
    if (size_in_memory(p->bottom + size, p->n + 1) > p->slice_size) {
        if (p->n > 0)
            return 0;
        if (grow(&p->records, &p->records_max, size) < 0
            || grow(&p->packed, &p->packed_max, packed_bound(size, 1)) < 0)
            return -1;
    }
    memcpy(p->records + p->bottom, record, size);
    p->bottom += size;
    p->n++;
    p->keys_end = (size_t)(put_varint(p->packed + p->keys_end, sort_key - p->last) - p->packed);
    p->last = sort_key;
    return 1;
}

/* Appends the units; returns the packed size. */
static size_t pack_units(const struct spill_packer *p)
{
    uint8_t *out = p->packed + p->keys_end;
    for (size_t at = 0; at < p->bottom; at += SPILL_UNIT) {
        int n = p->bottom - at < SPILL_UNIT ? (int)(p->bottom - at) : SPILL_UNIT;
        int packed = LZ4_compress_fast((const char *)p->records + at, (char *)out + UNIT_HEAD, n,
                                       LZ4_COMPRESSBOUND(SPILL_UNIT), ACCELERATION);
        store_le32(out, (uint32_t)packed);
        out += UNIT_HEAD + packed;
    }
    return (size_t)(out - p->packed);
}

void spill_packer_pack(struct spill_packer *p, const uint8_t **packed, size_t *n)
{
    *n = pack_units(p);
    *packed = p->packed;
    store_le64(p->packed + HASH, p->bottom);
    store_le64(p->packed + HASH + 8, p->n);
    store_le64(p->packed + HASH + 16, p->keys_end - SPILL_SLICE_HEADER);
    store_le64(p->packed, XXH3_64bits(p->packed + HASH, *n - HASH));
    empty(p);
}

uint64_t spill_slice_size(const uint8_t packed[SPILL_SLICE_HEADER])
{
    return size_in_memory(load_le64(packed + HASH), load_le64(packed + HASH + 8));
}

/* Keys from in[0..end) to keys[n], by difference; the places come later. NULL: too few bytes. */
static const uint8_t *unpack_keys(const uint8_t *in, const uint8_t *end, struct bam_key *keys, size_t n)
{
    uint64_t sort = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t v = 0;
        unsigned shift = 0;
        do {
            if (in == end || shift > 63)
                return NULL;
            v |= (uint64_t)(*in & 0x7f) << shift;
            shift += 7;
        } while (*in++ & 0x80);
        keys[i].sort = sort += v;
    }
    return in;
}

static int unpack_units(struct spill_slice *slice, const uint8_t *in, const uint8_t *end)
{
    for (size_t at = 0; at < slice->bottom; at += SPILL_UNIT) {
        int n = slice->bottom - at < SPILL_UNIT ? (int)(slice->bottom - at) : SPILL_UNIT;
        if (end - in < UNIT_HEAD)
            return -1;
        uint32_t packed = load_le32(in);
        in += UNIT_HEAD;
        if (packed > (size_t)(end - in)
            || LZ4_decompress_safe((const char *)in, (char *)slice->base + at, (int)packed, n) != n)
            return -1;
        in += packed;
    }
    return in == end ? 0 : -1;
}

/* Finds the records, and gives the keys their places. */
static int place_records(struct spill_slice *slice, struct bam_key *keys)
{
    size_t at = 0;
    for (size_t i = 0; i < slice->n; i++) {
        if (slice->bottom - at < BAM_MIN_RECORD)
            return -1;
        size_t size = bam_record_size((const struct bam_record *)(slice->base + at));
        if (size > slice->bottom - at)
            return -1;
        keys[i].place = bam_key_place(at, size);
        at += size;
    }
    return at == slice->bottom ? 0 : -1;
}

int spill_slice_unpack(struct spill_slice *slice, const uint8_t *packed, size_t n)
{
    if (n < SPILL_SLICE_HEADER || load_le64(packed) != XXH3_64bits(packed + HASH, n - HASH))
        return -1;
    uint64_t bottom = load_le64(packed + HASH), records = load_le64(packed + HASH + 8);
    uint64_t key_bytes = load_le64(packed + HASH + 16);
    if (key_bytes > n - SPILL_SLICE_HEADER || records > slice->size / sizeof(struct bam_key)
        || bottom > slice->size || size_in_memory(bottom, records) > slice->size)
        return -1;
    slice->bottom = bottom;
    slice->n = records;
    struct bam_key *keys = (struct bam_key *)(slice->base + slice->size) - records;
    const uint8_t *units = packed + SPILL_SLICE_HEADER + key_bytes;
    if (unpack_keys(packed + SPILL_SLICE_HEADER, units, keys, records) != units
        || unpack_units(slice, units, packed + n) < 0)
        return -1;
    return place_records(slice, keys);
}
