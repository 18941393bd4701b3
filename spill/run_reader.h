/* SPDX-License-Identifier: MIT */
/* Brings spilled runs back for the last merge. Each run has some buffers, which tasks fill ahead.
 *
 * When the merge leaves a buffer, the sink still uses its records. The buffer is filled
 * again once the sink has passed them. */
#ifndef RUN_READER_H
#define RUN_READER_H

#include "spill/spill_run.h"

struct latch;
struct record_sink;
struct run_reader;

struct run_reader_options {
    const struct spill_run *runs;   /* in input order */
    size_t n_runs;               /* at least 1 */
    struct spill_store *store;
    struct record_sink *sink;    /* where the merged records are put */
    size_t slice_size;           /* of the largest slice; larger ones take memory beside the buffers */
    size_t large;                /* see struct spill_gate */
    uint8_t *memory;             /* at a multiple of 16; at least 2 slices for each run */
    size_t memory_size;
    int n_threads;
    struct latch *latch;
};

/* Begins to fill buffers. NULL: failed, and the error is recorded in the latch. */
struct run_reader *run_reader_open(const struct run_reader_options *options);

/* Call it only when all tasks are done. */
void run_reader_close(struct run_reader *reader);

/* The slices of a run are numbered from 0. They become ready one after the other, any thread may
 * look at them, and the merge leaves them in the same order. Only the main thread calls these
 * functions, but for run_reader_slice(). */

/* How many slices of each run can be in memory at a time. */
size_t run_reader_buffers(const struct run_reader *reader);

/* Whether the run has this slice. *key is the sort key of its first record;
 * the slice need not be in memory. */
bool run_reader_first_key(const struct run_reader *reader, size_t run, size_t slice, uint64_t *key);

/* Whether the slice is in memory. Ask for the slices of a run in order. idle: the main
 * thread has nothing else to do; if no buffer for the slice can become free by waiting, it
 * is then loaded to other memory. */
bool run_reader_ready(struct run_reader *reader, size_t run, size_t slice, bool idle);

/* A slice that is ready and not left. Any thread that got the number from the main thread may call it. */
const struct spill_slice *run_reader_slice(const struct run_reader *reader, size_t run, size_t slice);

/* Leaves the slices before this one. Their records have been put to the sink, and nobody looks at
 * their keys any more. -1: no memory, and the error is recorded in the latch. */
int run_reader_leave(struct run_reader *reader, size_t run, size_t slice);

/* Begins to fill the buffers that the sink has passed. */
void run_reader_refill(struct run_reader *reader);

/* Fills a buffer that no thread has claimed. 0: there is none. */
int run_reader_help(struct run_reader *reader);

#endif
