/* SPDX-License-Identifier: MIT */
/* Which blocks of the inputs go to the output as they are (--copy-blocks). What is asked is the stream of records that
 * are put, one after the other, and nothing else: so the answer is the same for any threads and memory.
 *
 *   records    | a | b | c |  d  | e | f |   g   | h | i |
 *   blocks         |<---- kept ---->|<---- kept ---->|          of one input
 *                      lead        part               rest of the record that goes on behind it
 *
 * A kept block (codec/kept_block.h) may be copied if all its records, and those of which it has a part, come one after
 * the other and unchanged, as they do in its input. None of them is longer than a block. It is copied if BEFORE such
 * blocks are in front of it without a gap, which were deflated again, or copied: so output that changes from one input
 * to the other is not cut into short blocks. Serial. */
#ifndef COPIED_BLOCKS_H
#define COPIED_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>
#include "bam/bam_record.h"

struct kept_block;

/* A zero-initialised struct has seen no record. */
struct copied_blocks {
    const struct kept_block *block;  /* that the records put last may be; NULL: none */
    uint32_t size;               /* bytes of the block in records that were put */
    uint32_t n_before;           /* blocks in front of it without a gap, BEFORE at most */
    bool joins;                  /* the record put last is the last of a block that may be copied, ... */
    uint32_t rest;               /* ... and so many bytes of it are behind that block */
    bool sound;                  /* the record put last may lie in two blocks; its source and size: */
    uint16_t source;
    uint32_t last_size;
};

/* The meaning of the next record. */
struct copy_step {
    bool breaks;                 /* the block that was to be copied is not: its records are like others */
    bool begins;                 /* blocks to be copied begin here, with the last `lead` bytes of the record before */
    uint32_t lead;
    bool copies;                 /* the record's first `part` bytes are in a block that is to be copied, ... */
    uint32_t part;
    const struct kept_block *whole;  /* ... which ends there; NULL: it goes on */
};

/* The blocks that were copied; bytes: compressed. */
struct copied_count {
    uint64_t blocks, bytes;
};

struct copy_step copied_blocks_next(struct copied_blocks *blocks, const struct record_ref *record);

#endif
