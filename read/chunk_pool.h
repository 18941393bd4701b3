/* SPDX-License-Identifier: MIT */
/* Chunks and slices of inputs that a merge reads at the same time. Each input has some of its own, and may borrow more
 * of those that all inputs share. An input whose slices the merge has left recently may borrow many; an input that
 * waits for its turn may borrow none:
 *
 *   left last:  B B A B B B A B ...      the shared ones: 6 of 8 are meant for B, 2 for A, none for C
 *
 * So inputs whose records are taken one input after the other are read as fast as a single input. Main thread only. */
#ifndef CHUNK_POOL_H
#define CHUNK_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/task_ring.h"
#include "read/record_slice.h"

struct chunk_block;
struct chunk_borrower;

/* The memory for the bytes of a chunk: see struct chunk. */
struct chunk_text {
    uint8_t *bytes;
    struct chunk_block *blocks;
    uint8_t *kept;
};

enum { CHUNK_POOL_OWN = 2 };     /* chunks that each input of a merge has of its own */

struct chunk_pool_options {
    size_t n_inputs;
    uint32_t own_chunks, own_slices;     /* number of them for each input */
    uint32_t borrows;            /* largest number of chunks, and of slices, that an input borrows */
    size_t n_shared;             /* chunks, and slices, that all inputs may borrow together */
    size_t records_size;         /* largest number of bytes that the unused buffer for a chunk's records keeps */
};

struct chunk_pool {
    struct chunk_pool_options opt;
    size_t chunks, slices;       /* shared chunks and slices that are not borrowed */
    struct chunk_borrower **last; /* the owners of the slices that the merge left last; n_shared at most, used in
                                  * turn */
    size_t n_left;
    struct chunk_text *texts;    /* memory of chunks and slices that are not in use */
    struct record_slice *records;
    size_t n_texts, n_records, most_texts, most_records;
    struct task_ring ring;       /* the work of a slot is to free a part of the memory */
};

/* The share of one input in the pool. */
struct chunk_borrower {
    struct chunk_pool *pool;
    size_t n_recent;             /* number of its slices among those left last */
    size_t chunks, slices;       /* borrowed */
};

/* -1: out of memory. A zero-initialised pool may be ended and closed. */
int chunk_pool_open(struct chunk_pool *pool, const struct chunk_pool_options *options);
void chunk_pool_close(struct chunk_pool *pool);

/* Returns the bytes that a pool takes besides the chunks and slices. */
size_t chunk_pool_memory(const struct chunk_pool_options *options);

/* Call it when nothing is taken or put any more: tasks begin to free the memory. Close the pool after the parallel
 * region. */
void chunk_pool_end(struct chunk_pool *pool);

/* The merge has left a slice of this input. */
void chunk_pool_note(struct chunk_borrower *borrower);

/* Returns whether an input with this many chunks, or slices, may have one more. */
bool chunk_pool_may_fill(const struct chunk_borrower *borrower, size_t chunks);
bool chunk_pool_may_keep(const struct chunk_borrower *borrower, size_t slices);

/* Notes that the input now has this many chunks, or slices. */
void chunk_pool_fills(struct chunk_borrower *borrower, size_t chunks);
void chunk_pool_keeps(struct chunk_borrower *borrower, size_t slices);

/* Takes unused memory. False: there is none, so the caller must allocate it. */
bool chunk_pool_take_text(struct chunk_pool *pool, struct chunk_text *text);
bool chunk_pool_take_records(struct chunk_pool *pool, struct record_slice *records);

/* Takes back memory that is no longer used. A text without bytes counts as no memory. */
void chunk_pool_put_text(struct chunk_pool *pool, struct chunk_text text);
void chunk_pool_put_records(struct chunk_pool *pool, struct record_slice records);

#endif
