/* SPDX-License-Identifier: MIT */
/* Spilled runs on their way back, for the last merge: some buffers for each run,
 * filled ahead by tasks.
 *
 * A buffer's records are still in use, by the sink, when the merge is through
 * with it; it is filled again once the sink has passed them. */
#ifndef RUN_READER_H
#define RUN_READER_H

#include "run_merge.h"
#include "spill_run.h"

struct latch;
struct record_sink;
struct run_reader;
struct stats;

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
    struct stats *stats;         /* may be NULL */
};

/* Begins to fill buffers. NULL: told to the latch. */
struct run_reader *run_reader_open(const struct run_reader_options *options);

/* Not before the tasks are done. */
void run_reader_close(struct run_reader *reader);

/* A run_merge_more_fn; the runs are the merge's first sources. arg: the reader. */
int run_reader_more(void *arg, size_t number, struct merge_source *source);

#endif
