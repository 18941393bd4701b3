/* SPDX-License-Identifier: MIT */
/* Brings the records of the inputs into the arena, block by block. The main thread assigns the places in the arena,
 * and takes the blocks back in file order. There are two kinds of blocks:
 *
 *   BGZF blocks of BAM in a file    a task inflates a block to its place, and guesses where records begin. The main
 *                                   thread verifies the guess, and lists the records
 *   spans of a stream's slices      a task copies whole records to their place: see read/slice_copies.h
 *
 * Only the main thread calls these functions. */
#ifndef BLOCK_READER_H
#define BLOCK_READER_H

#include "bam_arena.h"
#include "read/input.h"
#include "read/slice_copies.h"

struct latch;
struct sort_rule;
struct clocks;

struct block_reader_options {
    const struct inputs *inputs;
    uint32_t n_slots;            /* of each input's source */
    uint32_t n_lent;             /* slices of a stream that it has at one time */
    uint64_t size_hint;          /* bytes of records to be expected; 0: nobody knows */
    struct latch *latch;
    struct clocks *clocks;
};

struct found;

struct block_reader {
    struct block_reader_options opt;
    struct input *in;       /* the one being read */
    struct bam_arena *arena;     /* where its blocks go; set by the main thread while no block is out */
    struct found *found;         /* one per slot of the source */
    struct slice_copies copies;  /* of the input's stream, if it has one */
    uint64_t last_block;         /* file offset of the block taken back last */
};

/* -1: out of memory, and the error is recorded in the latch. */
int block_reader_open(struct block_reader *reader, const struct block_reader_options *options);

/* Call it after the parallel region: tasks that came too late for their block still look at its slot. */
void block_reader_close(struct block_reader *reader);

/* From now on blocks go to this arena. No block may be out. */
void block_reader_set_arena(struct block_reader *reader, struct bam_arena *arena);

/* Goes on with this input, after the last one was ended. -1: out of memory, and the error is recorded in the latch. */
int block_reader_begin(struct block_reader *reader, struct input *in);

/* Puts the bytes behind the header, in the header's last block, into the arena, which has room for them. Of the first
 * input, rule learns from the first records, if the arena has a rule. -1: failed, and the error is recorded in the
 * latch. */
int block_reader_start(struct block_reader *reader, struct sort_rule *rule);

/* Finds the next block, and its size in the arena. Waits for more input where that is needed. 1: found; 0: the input
 * ends here; -1: failed, and the error is recorded in the latch. Finds the same block until it is handed out. */
int block_reader_peek(struct block_reader *reader, size_t *size);

/* Whether a block must be taken back before the next one is handed out. */
bool block_reader_full(const struct block_reader *reader);

/* Hands out the peeked block, of so many bytes, for which there is room in the arena. */
void block_reader_hand_out(struct block_reader *reader, size_t size);

/* The keys in the arena are in their places when so many more blocks are taken back. */
uint32_t block_reader_behind(const struct block_reader *reader);

/* Takes the oldest block back and lists its records in the arena. wait: works until the block is inflated.
 * 1: done; 0: none is ready (with wait: none is out, and all keys are in their places); -1: a bad block or record, or
 * no memory, and the error is recorded in the latch. Where a name lacks its NUL, the input becomes a stream: peek
 * again. The block's keys may reach their places only when the source's slot is used again,
 * or when this returns 0 with wait. */
int block_reader_take(struct block_reader *reader, bool wait);

/* Call it after the input's last block is taken back. 1: a name lacked its NUL, and the input goes on as a
 * stream. -1: the input ends inside a record, and the error is recorded in the latch. */
int block_reader_end(struct block_reader *reader);

/* Bytes of records to be expected in all, judged by what is read so far; 0: nobody knows. */
double block_reader_expected(const struct block_reader *reader);

/* Records still to come in this input, judged by what is read so far; UINT64_MAX: nobody knows. */
uint64_t block_reader_to_come(const struct block_reader *reader);

/* Bytes that will come for certain. */
uint64_t block_reader_least(const struct block_reader *reader);

/* Bytes of memory for each slot. */
size_t block_reader_slot_memory(void);

#endif
