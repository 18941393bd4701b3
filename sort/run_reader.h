/* SPDX-License-Identifier: MIT */
/* Brings spilled runs back for the last merge. Each run has some buffers, which tasks fill ahead of the merge. When the
 * merge leaves a buffer, the sink still uses its records. The buffer is filled again once the sink has passed them. */
#ifndef RUN_READER_H
#define RUN_READER_H

#include <stdbool.h>
#include "sort/merge_ring.h"
#include "sort/spill_run.h"

struct engine;

struct run_reader_options {
    const struct spill_run *runs;   /* in input order */
    size_t n_runs;               /* at least 1 */
    struct spill_store *store;
    struct record_sink *sink;    /* where the merged records are put */
    size_t slice_size;           /* size of the largest slice; larger slices take memory outside of the buffers */
    uint8_t *memory;             /* at a multiple of 16; at least 2 slices for each run */
    size_t memory_size;
    const struct engine *engine;
    bool keeps;                  /* the runs stay in the store, to be read again */
    bool compares;               /* records of equal keys are compared */
};

/* Begins to fill buffers. NULL: failed, and the error is recorded in the latch. */
struct run_reader *run_reader_open(const struct run_reader_options *options);

/* Call it only when all tasks are done. */
void run_reader_close(struct run_reader *reader);

/* The runs as the merge needs them. */
struct merge_runs run_reader_runs(struct run_reader *reader);

#endif
