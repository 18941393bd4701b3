/* SPDX-License-Identifier: MIT */
/* The last merge. The main thread cuts sublists and runs into ranges, tasks merge ranges side by side, and the main
 * thread takes their records back in order. So the output does not show where the cuts are.
 *
 *   sublists and    cut 0   cut 1   cut 2   cut 3
 *   slices of runs  |-------|-------|-------|---> planned by the main thread, ahead
 *                       |       |       |
 *   ring of ranges  [ DONE ][ TAKEN][ READY][ FREE ] ...     a heap and a list of
 *                       |                                    records each
 *                       +--> merge_ring_take(), in order
 *
 * In runs, the first record of every slice is a cut. So a range needs few slices of each run, and the first keys, which
 * are in memory, determine which slice is needed next. In sublists, evenly spread keys are cuts. A range has about as
 * many records as its list holds. A range with more records is merged in several passes, and keeps its heap between
 * them. */
#ifndef MERGE_RING_H
#define MERGE_RING_H

#include "base/record_stream.h"
#include "bam_arena.h"
#include "sort/range_plan.h"
#include "write/record_list.h"

struct engine;

struct merge_ring_options {
    const struct bam_arena *arenas[RANGE_ARENAS_MAX];   /* their sublists are sorted; in the order of the input */
    size_t n_arenas;
    struct merge_runs runs;      /* their records come before the arenas' records in the input */
    struct record_sink *sink;    /* the main thread deflates its blocks while it waits */
    uint32_t n_ranges;           /* in the ring; at least 2. Each range has a list */
    uint32_t n_spare;            /* additional lists, so that the sink may use lists while tasks continue */
    uint32_t n_records;          /* records that a range's list holds and one pass merges */
    /* Copies the records of a finished list if they do not go to a sink; `sink` is then NULL. It is called in the
     * range's task, or on the main thread. index: of the range, less than n_ranges. NULL: records go to the sink. */
    void (*copy)(void *arg, uint32_t index, const struct record_list *list);
    void *arg;                   /* argument of copy() */
    size_t n_bytes;              /* a list takes about this number of bytes of records at most, and ... */
    size_t n_wanted;             /* ... a range should have this number of records, if that is less than its list
                                  * holds */
    const struct engine *engine;
};

/* NULL: out of memory, and the error is recorded in the latch. */
struct merge_ring *merge_ring_open(const struct merge_ring_options *options);

/* Call it only when all tasks are done. */
void merge_ring_close(struct merge_ring *ring);

/* The functions of a struct list_stream of the merged records. A list has a range, or as much of a range as it has room
 * for. If no spare list is free, the list has no `fit`, because its memory is used again. */
enum chunk_state merge_ring_advance(void *ring);
int merge_ring_take(void *ring, struct record_list *list);
bool merge_ring_help(void *ring);

/* Waits for the next list, and takes it: see list_stream_next(). */
int merge_ring_next(struct merge_ring *ring, struct record_list *list);

/* The index of the range whose list was taken last. */
uint32_t merge_ring_given(const struct merge_ring *ring);

/* Returns the bytes of memory that a ring takes. n_ways: runs and sublists. in_arenas: records in the arenas. */
size_t merge_ring_memory(uint32_t n_ranges, uint32_t n_spare, uint32_t n_records, size_t n_ways, size_t in_arenas);

#endif
