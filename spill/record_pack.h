/* SPDX-License-Identifier: MIT */
/* Packing records for a short time: little CPU first, then size. Serial, no I/O.
 *
 * A unit is some 64 KiB of whole records, taken apart into streams, each
 * packed as pays for it (bench/spill_codecs.c, DESIGN.md):
 *
 *   | records | bits | values[16] | packed sizes[6] | fixed | names | CIGARs | SEQs | QUALs | tags |
 *   <--- 4 ---> <- 4 ->           <---- 6 x 4 ---->
 *
 * fixed:  the nine words of 32 bits of each record, column by column, each less
 *         the one before it; LZ4.
 * SEQs:   as they are: neighbours of a run hardly overlap.
 * QUALs:  `bits` for each value, which is an index into values (2, 4) or itself
 *         (6); 8: LZ4.
 * names, CIGARs, tags: LZ4.
 * What the streams hold is told by the fixed fields. */
#ifndef RECORD_PACK_H
#define RECORD_PACK_H

#include <stddef.h>
#include <stdint.h>

struct bam_key;

enum { RECORD_PACK_UNIT = 64 << 10, RECORD_PACK_SLACK = 64 };

struct record_packer;

/* NULL: no memory. */
struct record_packer *record_packer_new(void);
void record_packer_free(struct record_packer *packer);

/* Adds a checked record to the unit. -1: no memory. */
int record_packer_add(struct record_packer *packer, const uint8_t *record, size_t size);

/* Bytes of the records in the unit; it is full at RECORD_PACK_UNIT. */
size_t record_packer_bytes(const struct record_packer *packer);

/* The most bytes that record_packer_pack() would write. */
size_t record_packer_bound(const struct record_packer *packer);

/* Packs the unit to out and empties it; returns the packed size. */
size_t record_packer_pack(struct record_packer *packer, uint8_t *out);

/* Empties the packer and gives back what records longer than a unit took. */
void record_packer_trim(struct record_packer *packer);

/* Bytes of memory a packer takes, as long as records are shorter than a unit. */
size_t record_packer_memory(void);

struct record_unpacker;

struct record_unpacker *record_unpacker_new(void);
void record_unpacker_free(struct record_unpacker *unpacker);

/* Where a unit goes. */
struct unpacked {
    uint8_t *base;               /* what places are relative to */
    size_t at, end;              /* the records go to base + at, not beyond base + end */
    struct bam_key *keys;        /* whose places are set, one for each record */
    size_t n_keys;               /* those left */
};

/* Unpacks the unit at in[n], after which RECORD_PACK_SLACK more bytes may be
 * read, and moves `to` on. Returns the unit's packed size; 0: it is damaged, or
 * there is no memory. */
size_t record_unpack(struct record_unpacker *unpacker, const uint8_t *in, size_t n, struct unpacked *to);

#endif
