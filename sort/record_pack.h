/* SPDX-License-Identifier: MIT */
/* Packs records for a short time: little CPU first, then size. Serial, no I/O.
 *
 * A pack is about 64 KiB of complete records, separated into streams. Each stream gets the packing that is worth its
 * CPU time (bench/spill_codecs.c, doc/dev/tried.md):
 *
 *   | records | bits | values[16] | packed sizes[6] | fixed | names | CIGARs | SEQs | QUALs | tags |
 *   <--- 4 ---> <- 4 ->           <---- 6 x 4 ---->
 *
 * fixed:  the nine 32-bit words of each record, column by column, as differences from the word before; then LZ4.
 * SEQs:   unchanged, because neighbours in a run hardly overlap.
 * QUALs:  `bits` bits for each value: an index into values (2 or 4), or the value itself (6); 8 means LZ4.
 * names, CIGARs, tags: LZ4.
 *
 * The fixed fields determine how much of each stream belongs to which record. */
#ifndef RECORD_PACK_H
#define RECORD_PACK_H

#include <stddef.h>
#include <stdint.h>

enum {
    RECORD_PACK_SIZE = 64 << 10, /* bytes of records; packs of 128 KiB are as fast and 2 % smaller */
    RECORD_PACK_SLACK = 64,      /* bytes after a buffer's end that a copy in large steps may reach */
};

/* NULL: out of memory. */
struct record_packer *record_packer_new(void);
void record_packer_free(struct record_packer *packer);

/* Adds a checked record to the pack. -1: out of memory. */
int record_packer_add(struct record_packer *packer, const uint8_t *record, size_t size);

/* Bytes of the records in the pack; it is full at RECORD_PACK_SIZE. */
size_t record_packer_bytes(const struct record_packer *packer);

/* An upper limit on the bytes that record_packer_pack() would write. */
size_t record_packer_bound(const struct record_packer *packer);

/* Writes the pack to out and empties it. Returns the packed size. */
size_t record_packer_pack(struct record_packer *packer, uint8_t *out);

/* Empties the packer and frees the memory that was taken for records longer than a pack. */
void record_packer_trim(struct record_packer *packer);

/* Bytes of memory that a packer takes, as long as records are shorter than a pack. */
size_t record_packer_memory(void);

struct record_unpacker *record_unpacker_new(void);
void record_unpacker_free(struct record_unpacker *unpacker);

/* Where the records of a pack go. */
struct unpacked {
    uint8_t *base;               /* the keys' places are relative to this */
    size_t at, end;              /* records go to base + at, and not beyond base + end */
    struct bam_key *keys;        /* their places are set, one key for each record */
    size_t n_keys;               /* keys left */
};

/* Unpacks the pack at in[n], after which RECORD_PACK_SLACK more bytes may be read, and advances `to`. Returns the
 * pack's packed size; 0: the pack is damaged, or there is no memory. */
size_t record_unpack(struct record_unpacker *unpacker, const uint8_t *in, size_t n, struct unpacked *to);

#endif
