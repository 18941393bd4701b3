/* SPDX-License-Identifier: MIT */
/* Brings the records of the inputs into the arena, block by block. The main thread assigns the places in the arena,
 * and takes the blocks back in file order. There are two kinds of blocks:
 *
 *   BGZF blocks of BAM in a file    a task inflates a block to its place, guesses where records begin, checks them,
 *                                   makes keys and sums. The main thread verifies the guess, and takes these over
 *   spans of a stream's slices      a task copies complete records to their place: see read/slice_copies.h
 *
 * Only the main thread calls these functions. */
#ifndef BLOCK_READER_H
#define BLOCK_READER_H

#include "bam_arena.h"
#include "read/input.h"
#include "read/slice_copies.h"

struct engine;
struct sort_rule;

struct block_reader_options {
    const struct inputs *inputs;
    uint32_t n_slots;            /* slots of each input's source */
    uint32_t n_lent;             /* slices of a stream that the reader has at one time */
    uint64_t size_hint;          /* expected bytes of records; 0: not known */
    const struct engine *engine;
};

struct block_found;

struct block_reader {
    struct block_reader_options opt;
    struct input *in;            /* the input that is being read */
    bool changed;                /* since the last peek, the input has become a stream: the peeked block is void */
    struct bam_arena *arena;     /* the destination of its blocks; set by the main thread while no block is out */
    struct block_found *found;   /* one per slot of the source */
    struct slice_copies copies;  /* copies of the input's stream, if it has one */
    uint64_t last_block;         /* file offset of the block taken back last */
};

/* -1: out of memory, and the error is recorded in the latch. */
int block_reader_open(struct block_reader *reader, const struct block_reader_options *options);

/* Call it after the parallel region, because late tasks still look at the slot of their block. */
void block_reader_close(struct block_reader *reader);

/* From now on blocks go to this arena. No block may be out. */
void block_reader_set_arena(struct block_reader *reader, struct bam_arena *arena);

/* Continues with this input, after the last one was ended. -1: out of memory, and the error is recorded in the
 * latch. */
int block_reader_begin(struct block_reader *reader, struct input *in);

/* Puts the bytes after the header, in the header's last block, into the arena, which has room for them. If the arena
 * has a rule, `rule` learns from the first records of the first input. NULL: it has learned before. -1: failed, and the
 * error is recorded in the latch. */
int block_reader_start(struct block_reader *reader, struct sort_rule *rule);

/* Finds the next block, and its size in the arena. Waits for more input if necessary. 1: found; 0: the input ends here;
 * -1: failed, and the error is recorded in the latch. It finds the same block again until the block is handed out. */
int block_reader_peek(struct block_reader *reader, size_t *size);

/* Returns whether a block must be taken back before the next one is handed out. */
bool block_reader_full(const struct block_reader *reader);

/* Hands out the peeked block of `size` bytes, for which the arena has room. If the input has become a stream since the
 * block was peeked, it does nothing: the bytes of the block come again. */
void block_reader_hand_out(struct block_reader *reader, size_t size);

/* Returns how many more blocks must be taken back before all keys in the arena are in their places. */
uint32_t block_reader_behind(const struct block_reader *reader);

/* Takes the oldest block back and lists its records in the arena. wait: works until the block is inflated. 1: done; 0:
 * no block is ready (with wait: no block is out, and all keys are in their places); -1: a bad block or record, or no
 * memory, and the error is recorded in the latch. If a name lacks its NUL, the input becomes a stream. The block's keys
 * may reach their places only when the source's slot is used again, or when this function returns 0 with wait. */
int block_reader_take(struct block_reader *reader, bool wait);

/* Call it after the input's last block is taken back. 1: the input has become a stream since the last peek, and
 * continues. -1: the input ends inside a record, or a stream gave other records than were taken; the error is recorded
 * in the latch. */
int block_reader_end(struct block_reader *reader);

/* Returns the expected bytes of all records, estimated from the bytes read so far; 0: not known. */
double block_reader_expected(const struct block_reader *reader);

/* Returns the expected number of records still to come in this input, estimated from the bytes read so far; UINT64_MAX:
 * not known. */
uint64_t block_reader_to_come(const struct block_reader *reader);

/* Returns the bytes of records that will certainly come. */
uint64_t block_reader_least(const struct block_reader *reader);

/* Returns the bytes of memory for n_slots slots. */
size_t block_reader_memory(uint32_t n_slots);

#endif
