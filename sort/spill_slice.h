/* SPDX-License-Identifier: MIT */
/* A slice: sorted records that are spilled together and loaded together. Serial, no I/O.
 *
 * In memory it is a small arena, records up and keys down:
 *
 *   base          bottom              size
 *   | records ---->|   free   |<- keys |      places are relative to base
 *
 * Packed (integers are little-endian):
 *
 *   | XXH3-64 of all that follows | bytes of records | records | bytes of keys | pack pack ... | keys |
 *   <------------- 8 -------------> <------ 8 ------> <-- 8 --> <----- 8 ----->
 *
 * Keys are stored as differences between neighbours, seven bits in a byte, the least significant first; the top bit is
 * set where more bytes follow. They are not made again from the records, because -M may clear the fields from which it
 * made them. */
#ifndef SPILL_SLICE_H
#define SPILL_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "order/bam_key.h"

struct record_unpacker;

struct spill_slice {
    uint8_t *base;
    size_t size;                 /* bytes of memory at base */
    size_t bottom;               /* bytes of records */
    size_t n;                    /* records */
};

/* The keys of a slice, sorted. */
static inline const struct bam_key *spill_slice_keys(const struct spill_slice *slice)
{
    return (const struct bam_key *)(slice->base + slice->size) - slice->n;
}

/* Makes slices from sorted records. One thread at a time uses it. */
struct spill_packer;

/* slice_size: bytes in memory of a slice, a multiple of 16. NULL: out of memory. */
struct spill_packer *spill_packer_new(size_t slice_size);
void spill_packer_free(struct spill_packer *packer);

/* Returns whether a slice is too small for a record of `size` bytes. */
bool spill_packer_too_small(const struct spill_packer *packer, size_t size);

/* Adds a record, in order. It must not be too large for a slice. 1: added; 0: the slice is full, pack it first; -1: out
 * of memory. */
int spill_packer_add(struct spill_packer *packer, uint64_t sort_key, const uint8_t *record, size_t size);

/* Returns whether nothing was added since the last spill_packer_pack(). */
bool spill_packer_empty(const struct spill_packer *packer);

/* Packs the records that were added and empties the packer. The *n bytes at *packed stay valid until the next call. -1:
 * out of memory. */
int spill_packer_pack(struct spill_packer *packer, const uint8_t **packed, size_t *n);

/* Drops the records that were added. */
void spill_packer_drop(struct spill_packer *packer);

/* Bytes that a packer takes for slices of slice_size. */
size_t spill_packer_memory(size_t slice_size);

/* Bytes in memory of a slice with n_records records of record_bytes bytes in all. */
size_t spill_slice_memory(uint64_t record_bytes, uint64_t n_records);

/* Bytes in memory of the slice whose packed bytes begin with packed[SPILL_SLICE_HEADER]. */
enum { SPILL_SLICE_HEADER = 32 };
uint64_t spill_slice_size(const uint8_t packed[SPILL_SLICE_HEADER]);

/* Unpacks packed[n], after which RECORD_PACK_SLACK bytes may be read, into slice->base[slice->size].
 * -1: the bytes differ from those that were packed, or do not fit, or there is no memory. */
int spill_slice_unpack(struct spill_slice *slice, struct record_unpacker *unpacker, const uint8_t *packed, size_t n);

#endif
