/* SPDX-License-Identifier: MIT */
/* Decides which blocks of the inputs are copied to the output unchanged (--copy-blocks). The decision depends only on
 * the stream of records, so it is the same for any number of threads and any memory.
 *
 *   records    | a | b | c |  d  | e | f |   g   | h | i |
 *   blocks         |<---- kept ---->|<---- kept ---->|          of one input
 *                      lead        part               rest of the record that continues after it
 *
 * A kept block (codec/kept_block.h) may be copied if all its records, including those that it only has a part of,
 * follow each other unchanged, as in its input, and none of them is longer than a block. It is copied if BEFORE such
 * blocks come directly before it, deflated again or copied. So output that alternates between inputs is not cut into
 * short blocks. Serial. */
#ifndef COPIED_BLOCKS_H
#define COPIED_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>
#include "bam/bam_record.h"

struct kept_block;

/* A zero-initialised struct has no records yet. */
struct copied_blocks {
    const struct kept_block *block;  /* the block of the latest records; NULL: none */
    uint32_t size;               /* bytes of the block in the records so far */
    uint32_t n_before;           /* number of blocks that may be copied directly before it, BEFORE at most */
    bool joins;                  /* the latest record is the last of a block that may be copied, ... */
    uint32_t rest;               /* ... and this many bytes of it come after that block */
    bool sound;                  /* the latest record is unchanged and not longer than a block; its input and size: */
    uint16_t input;
    uint32_t last_size;
};

/* The result for the next record. */
struct copy_step {
    bool breaks;                 /* the block that was to be copied is not: its records are treated like others */
    bool begins;                 /* copied blocks begin here, with the last `lead` bytes of the record before */
    uint32_t lead;
    bool copies;                 /* the record's first `part` bytes are in a block that will be copied, ... */
    uint32_t part;
    const struct kept_block *whole;  /* ... which ends there; NULL: it continues */
};

/* Counts of the blocks that were copied; bytes: compressed. */
struct copied_count {
    uint64_t blocks, bytes;
};

/* Returns what the next record of the output means for the blocks that are copied. Call it once for each record, in
 * output order. */
struct copy_step copied_blocks_next(struct copied_blocks *blocks, const struct record_ref *record);

#endif
