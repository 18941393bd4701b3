/* SPDX-License-Identifier: MIT */
/* The last merge, by many threads: sublists in memory and runs on their way back
 * from disk are cut into ranges; tasks merge ranges side by side; the master puts
 * their records to the sink in order.
 *
 *   sublists and    cut 0   cut 1   cut 2   cut 3
 *   slices of runs  |-------|-------|-------|---> planned by the master, ahead
 *                       |       |       |
 *   ring of ranges  [ DONE ][ TAKEN][ READY][ FREE ] ...     a heap and a list of
 *                       |                                    records each
 *                       +--> record_sink_put(), in order
 *
 * What the master does for each record is to add up its size, so that blocks are
 * filled as if one thread had merged: where the cuts are does not show in the output.
 *
 * Cuts. Of runs, every slice's first record is one: then a range needs one slice
 * of each run, or few, and which slice is needed next is known from the first
 * keys, which are in memory. Of sublists, evenly spread keys. A range ends when it
 * has about as many records as its list holds; one that has more is merged in
 * several goes, its heap kept in between. */
#ifndef MERGE_RING_H
#define MERGE_RING_H

#include "bam_arena.h"

struct latch;
struct merge_ring;
struct record_sink;
struct run_reader;
struct stats;

struct merge_ring_options {
    const struct bam_arena *arenas[2];   /* sublists sorted; the older one first */
    struct run_reader *reader;   /* of runs older than those; NULL: none */
    size_t n_runs;
    struct record_sink *sink;
    uint32_t n_ranges;           /* in the ring, at least 2 */
    uint32_t n_records;          /* merged in one go */
    int n_threads;
    struct latch *latch;
    struct stats *stats;
};

/* NULL: no memory, told to the latch. */
struct merge_ring *merge_ring_open(const struct merge_ring_options *options);

/* Not before the tasks are done. */
void merge_ring_close(struct merge_ring *ring);

/* On the master: merges everything into the sink. -1: stop. */
int merge_ring_run(struct merge_ring *ring);

/* Bytes of memory that a ring takes. */
size_t merge_ring_memory(uint32_t n_ranges, uint32_t n_records, size_t n_sources);

#endif
