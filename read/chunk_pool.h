/* SPDX-License-Identifier: MIT */
/* Chunks and slices of inputs that are read at once, by a merge. Each input has some of its own; it may borrow more of
 * those that all share. An input whose slices the merge took last may borrow much, one that waits for its turn nothing:
 *
 *   left last:  B B A B B B A B ...      the shared ones: 6 of 8 are meant for B, 2 for A, none for C
 *
 * So what is gathered, one input after the other, is read as fast as if it were one. Main thread only. */
#ifndef CHUNK_POOL_H
#define CHUNK_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/task_ring.h"
#include "read/record_slice.h"

struct chunk_block;
struct chunk_borrower;

/* Where the bytes of a chunk go: see struct chunk. */
struct chunk_text {
    uint8_t *bytes;
    struct chunk_block *blocks;
    uint8_t *kept;
};

struct chunk_pool_options {
    size_t n_inputs;
    uint32_t own_chunks, own_slices;     /* of each input */
    uint32_t borrows;            /* chunks, and slices, that it may borrow at most */
    size_t n_shared;             /* chunks, and slices, that all may borrow together */
    size_t records_size;         /* bytes that unused room for the records of a chunk keeps */
};

struct chunk_pool {
    struct chunk_pool_options opt;
    size_t chunks, slices;       /* shared ones that are not borrowed */
    struct chunk_borrower **last; /* of the slices left last: whose they are; n_shared at most, used in turn */
    size_t n_left;
    struct chunk_text *texts;    /* memory of chunks and slices that are not in use */
    struct record_slice *records;
    size_t n_texts, n_records, most_texts, most_records;
    struct task_ring ring;       /* giving back a part of it is the work of a slot */
};

/* Of one input. */
struct chunk_borrower {
    struct chunk_pool *pool;
    size_t n_recent;             /* how many slices of it are among those left last */
    size_t chunks, slices;       /* borrowed */
};

/* -1: out of memory. A pool of zeros may be closed, and ended. */
int chunk_pool_open(struct chunk_pool *pool, const struct chunk_pool_options *options);
void chunk_pool_close(struct chunk_pool *pool);

/* Nothing is taken or put any more: tasks begin to give the memory back. Close it after the parallel region. */
void chunk_pool_end(struct chunk_pool *pool);

/* The merge has left a slice of this input. */
void chunk_pool_note(struct chunk_borrower *borrower);

/* Whether an input with so many chunks, or slices, may have one more. */
bool chunk_pool_may_fill(const struct chunk_borrower *borrower, size_t chunks);
bool chunk_pool_may_keep(const struct chunk_borrower *borrower, size_t slices);

/* It has so many now. */
void chunk_pool_fills(struct chunk_borrower *borrower, size_t chunks);
void chunk_pool_keeps(struct chunk_borrower *borrower, size_t slices);

/* Memory that is not used. False: there is none, so that new one is to be made. */
bool chunk_pool_take_text(struct chunk_pool *pool, struct chunk_text *text);
bool chunk_pool_take_records(struct chunk_pool *pool, struct record_slice *records);

/* Takes over what is not used any more; a text without bytes is none. */
void chunk_pool_put_text(struct chunk_pool *pool, struct chunk_text text);
void chunk_pool_put_records(struct chunk_pool *pool, struct record_slice records);

#endif
