/* SPDX-License-Identifier: MIT */
/* Spilled runs on their way back, for the last merge: some buffers for each run,
 * filled ahead by tasks.
 *
 * A buffer's records are still in use, by the sink, when the merge has left
 * it; it is filled again once the sink has passed them. */
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
    struct record_sink *sink;    /* that the merged records are put to */
    size_t slice_size;           /* of the largest slice; larger ones take memory beside */
    size_t large;                /* see struct spill_gate */
    uint8_t *memory;             /* at a multiple of 16; 2 slices for each run at least */
    size_t memory_size;
    int n_threads;
    struct latch *latch;
};

/* Begins to fill buffers. NULL: told to the latch. */
struct run_reader *run_reader_open(const struct run_reader_options *options);

/* Not before the tasks are done. */
void run_reader_close(struct run_reader *reader);

/* The slices of a run, numbered from 0, become ready one after the other, are looked
 * at by whoever likes, and are left in the same order. All but run_reader_slice() is
 * the master's. */

/* How many slices of each run can be in memory at a time. */
size_t run_reader_buffers(const struct run_reader *reader);

/* Whether the run has such a slice; the sort key of its first record, in memory or not. */
bool run_reader_first_key(const struct run_reader *reader, size_t run, size_t slice, uint64_t *key);

/* Whether the slice, the first one of those not known to be ready, is in memory. If
 * not, and `idle` says that the master has nothing else to do, sees to it that it can come. */
bool run_reader_ready(struct run_reader *reader, size_t run, size_t slice, bool idle);

/* One that is ready and not left. Any thread that has heard of it from the master. */
const struct spill_slice *run_reader_slice(const struct run_reader *reader, size_t run, size_t slice);

/* Leaves the slices before this one: their records were put to the sink, and nobody
 * looks at their keys any more. -1: no memory, told to the latch. */
int run_reader_leave(struct run_reader *reader, size_t run, size_t slice);

/* Begins to fill the buffers that the sink is through with. */
void run_reader_refill(struct run_reader *reader);

/* Fills a buffer that nobody has begun; 0: there is none. */
int run_reader_help(struct run_reader *reader);

#endif
