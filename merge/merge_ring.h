/* SPDX-License-Identifier: MIT */
/* The last merge, by many threads. The main thread cuts the sublists in memory, and the runs
 * that come back from disk, into ranges. Tasks merge ranges side by side. The main thread puts
 * their records to the sink, in order.
 *
 *   sublists and    cut 0   cut 1   cut 2   cut 3
 *   slices of runs  |-------|-------|-------|---> planned by the main thread, ahead
 *                       |       |       |
 *   ring of ranges  [ DONE ][ TAKEN][ READY][ FREE ] ...     a heap and a list of
 *                       |                                    records each
 *                       +--> record_sink_put(), in order
 *
 * For each record the main thread only adds up its size. So blocks are filled as if one thread had
 * merged, and the output does not show where the cuts are.
 *
 * Cuts. In runs, the first record of every slice is a cut. So a range needs one slice of each run, or
 * few; and the first keys, which are in memory, tell which slice is needed next. In sublists, evenly
 * spread keys are cuts. A range ends when it has about as many records as its list holds. A range with
 * more records is merged in several passes, and keeps its heap between them. */
#ifndef MERGE_RING_H
#define MERGE_RING_H

#include "bam_arena.h"

struct latch;
struct merge_ring;
struct record_sink;
struct run_reader;
struct stats;

struct merge_ring_options {
    const struct bam_arena *arenas[2];   /* sublists sorted; the older arena first */
    struct run_reader *reader;   /* of runs older than the arenas' records; NULL: there are no runs */
    size_t n_runs;
    struct record_sink *sink;
    uint32_t n_ranges;           /* in the ring; at least 2 */
    uint32_t n_records;          /* records that a range's list holds: merged in one pass */
    int n_threads;
    struct latch *latch;
    struct stats *stats;
};

/* NULL: no memory, and the error is recorded in the latch. */
struct merge_ring *merge_ring_open(const struct merge_ring_options *options);

/* Call it only when all tasks are done. */
void merge_ring_close(struct merge_ring *ring);

/* Merges everything into the sink. Call it on the main thread. -1: stop. */
int merge_ring_run(struct merge_ring *ring);

/* Bytes of memory that a ring takes. */
size_t merge_ring_memory(uint32_t n_ranges, uint32_t n_records, size_t n_sources);

#endif
