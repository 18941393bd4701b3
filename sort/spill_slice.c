/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "base/byte_buffer.h"
#include "base/byte_hash.h"
#include "base/endian_io.h"
#include "sort/record_pack.h"
#include "sort/spill_slice.h"

enum {
    HASH = 8,                    /* bytes of the checksum */
    VARINT_MAX = 10,
    KEYS_SHARE = 16,             /* the buffer for a slice's packed keys has 1/16 of the slice's size at first */
};

struct spill_packer {
    size_t slice_size;
    struct record_packer *packer;  /* the pack that is being made */
    struct byte_buffer packed;        /* room for the header, then the finished packs */
    struct byte_buffer keys;
    size_t bottom, n;            /* bytes of records, and records, in the slice */
    uint64_t last;               /* the sort key that was added last */
};

static void empty(struct spill_packer *p)
{
    p->bottom = p->n = p->last = p->keys.n = 0;
    p->packed.n = SPILL_SLICE_HEADER;
}

struct spill_packer *spill_packer_new(size_t slice_size)
{
    struct spill_packer *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->slice_size = slice_size;
    p->packer = record_packer_new();
    if (p->packer && byte_buffer_reserve(&p->packed, slice_size) == 0
        && byte_buffer_reserve(&p->keys, slice_size / KEYS_SHARE) == 0) {
        empty(p);
        return p;
    }
    spill_packer_free(p);
    return NULL;
}

void spill_packer_free(struct spill_packer *p)
{
    if (!p)
        return;
    record_packer_free(p->packer);
    free(p->packed.p);
    free(p->keys.p);
    free(p);
}

void spill_packer_drop(struct spill_packer *p)
{
    record_packer_trim(p->packer);
    empty(p);
}

size_t spill_packer_memory(size_t slice_size)
{
    return record_packer_memory() + slice_size + slice_size / KEYS_SHARE;
}

bool spill_packer_empty(const struct spill_packer *p)
{
    return p->n == 0;
}

size_t spill_slice_memory(uint64_t record_bytes, uint64_t n)
{
    size_t align = sizeof(struct bam_key);
    return (record_bytes + align - 1) / align * align + n * sizeof(struct bam_key);
}

static int end_pack(struct spill_packer *p)
{
    if (byte_buffer_reserve(&p->packed, p->packed.n + record_packer_bound(p->packer)) < 0)
        return -1;
    p->packed.n += record_packer_pack(p->packer, p->packed.p + p->packed.n);
    return 0;
}

bool spill_packer_too_small(const struct spill_packer *p, size_t size)
{
    return spill_slice_memory(size, 1) > p->slice_size;
}

int spill_packer_add(struct spill_packer *p, uint64_t sort_key, const uint8_t *record, size_t size)
{
    if (p->n > 0 && spill_slice_memory(p->bottom + size, p->n + 1) > p->slice_size)
        return 0;
    if (byte_buffer_reserve(&p->keys, p->keys.n + VARINT_MAX) < 0 || record_packer_add(p->packer, record, size) < 0)
        return -1;
    uint8_t *key = p->keys.p + p->keys.n;
    uint64_t v = sort_key - p->last;
    for (; v >= 0x80; v >>= 7)
        *key++ = (uint8_t)v | 0x80;
    *key++ = (uint8_t)v;
    p->keys.n = (size_t)(key - p->keys.p);
    p->last = sort_key;
    p->bottom += size;
    p->n++;
    return record_packer_bytes(p->packer) < RECORD_PACK_SIZE || end_pack(p) == 0 ? 1 : -1;
}

int spill_packer_pack(struct spill_packer *p, const uint8_t **packed, size_t *n)
{
    if ((record_packer_bytes(p->packer) > 0 && end_pack(p) < 0)
        || byte_buffer_reserve(&p->packed, p->packed.n + p->keys.n) < 0)
        return -1;
    memcpy(p->packed.p + p->packed.n, p->keys.p, p->keys.n);
    *packed = p->packed.p;
    *n = p->packed.n + p->keys.n;
    store_le64(p->packed.p + HASH, p->bottom);
    store_le64(p->packed.p + HASH + 8, p->n);
    store_le64(p->packed.p + HASH + 16, p->keys.n);
    store_le64(p->packed.p, byte_hash(p->packed.p + HASH, *n - HASH, 0));
    empty(p);
    return 0;
}

uint64_t spill_slice_size(const uint8_t packed[SPILL_SLICE_HEADER])
{
    return spill_slice_memory(load_le64(packed + HASH), load_le64(packed + HASH + 8));
}

/* Unpacks keys from in[0..end) to keys[n], but does not change their places. -1: too few or too many bytes. */
static int unpack_keys(const uint8_t *in, const uint8_t *end, struct bam_key *keys, size_t n)
{
    uint64_t sort = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t v = 0;
        unsigned shift = 0;
        do {
            if (in == end || shift > 63)
                return -1;
            v |= (uint64_t)(*in & 0x7f) << shift;
            shift += 7;
        } while (*in++ & 0x80);
        keys[i].sort = sort += v;
    }
    return in == end ? 0 : -1;
}

static int unpack_packs(struct spill_slice *slice, struct record_unpacker *unpacker, const uint8_t *in,
                        const uint8_t *end, struct bam_key *keys)
{
    struct unpacked to = {.base = slice->base, .end = slice->bottom, .keys = keys, .n_keys = slice->n};
    while (in < end) {
        size_t n = record_unpack(unpacker, in, (size_t)(end - in), &to);
        if (n == 0)
            return -1;
        in += n;
    }
    return to.at == to.end && to.n_keys == 0 ? 0 : -1;
}

int spill_slice_unpack(struct spill_slice *slice, struct record_unpacker *unpacker, const uint8_t *packed, size_t n)
{
    if (n < SPILL_SLICE_HEADER || load_le64(packed) != byte_hash(packed + HASH, n - HASH, 0))
        return -1;
    uint64_t bottom = load_le64(packed + HASH), records = load_le64(packed + HASH + 8);
    uint64_t key_bytes = load_le64(packed + HASH + 16);
    if (key_bytes > n - SPILL_SLICE_HEADER || records > slice->size / sizeof(struct bam_key)
        || bottom > slice->size || spill_slice_memory(bottom, records) > slice->size)
        return -1;
    slice->bottom = bottom;
    slice->n = records;
    struct bam_key *keys = (struct bam_key *)(slice->base + slice->size) - records;
    const uint8_t *packs_end = packed + n - key_bytes;
    return unpack_packs(slice, unpacker, packed + SPILL_SLICE_HEADER, packs_end, keys) < 0
        || unpack_keys(packs_end, packed + n, keys, records) < 0 ? -1 : 0;
}
