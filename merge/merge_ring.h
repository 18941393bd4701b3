/* SPDX-License-Identifier: MIT */
/* The last merge. The main thread cuts sublists and runs into ranges, tasks merge ranges side by side, and the main
 * thread takes their records back in order. So the output does not show where the cuts are.
 *
 *   sublists and    cut 0   cut 1   cut 2   cut 3
 *   slices of runs  |-------|-------|-------|---> planned by the main thread, ahead
 *                       |       |       |
 *   ring of ranges  [ DONE ][ TAKEN][ READY][ FREE ] ...     a heap and a list of
 *                       |                                    records each
 *                       +--> merge_ring_next(), in order
 *
 * In runs, the first record of every slice is a cut. So a range needs few slices of each run, and the first keys, which
 * are in memory, tell which slice is needed next. In sublists, evenly spread keys are cuts. A range has about as many
 * records as its list holds; one with more is merged in several passes, and keeps its heap between them. */
#ifndef MERGE_RING_H
#define MERGE_RING_H

#include "bam_arena.h"
#include "merge/run_merge.h"
#include "write/record_list.h"

/* Runs that left memory, as the merge sees them. It does not know how they come back: whoever reads them fills in the
 * functions. The slices of a run are numbered from 0. They become ready one after the other, and the merge leaves
 * them in the same order. Only the main thread calls these functions, but for slice(). */
struct merge_runs {
    size_t n;                    /* runs, in input order; 0: there are none, and nothing below is used */
    size_t n_buffers;            /* how many slices of each run can be in memory at a time */
    bool large;                  /* some slices are so large that it should be as few as possible */
    void *reader;                /* the first argument of each function */

    /* Whether the run has this slice. *key is the sort key of its first record; the slice need not be in memory. */
    bool (*first_key)(const void *reader, size_t run, size_t slice, uint64_t *key);

    /* Whether the slice is in memory. Ask for the slices of a run in order. idle: the main thread has nothing else to
     * do; if no buffer for the slice can become free by waiting, it is then loaded to other memory. */
    bool (*ready)(void *reader, size_t run, size_t slice, bool idle);

    /* The keys of a slice that is ready and not left. Any thread that got the number from the main thread
     * may call it. */
    struct merge_source (*slice)(const void *reader, size_t run, size_t slice);

    /* Whether only so much of the slice, which is ready, was loaded as records are compared by. */
    bool (*is_partial)(const void *reader, size_t run, size_t slice);

    /* Loads the rest of those before `end`, which are to be put. 1: done; 0: not yet, because memory will soon be free;
     * -1: failed, and the error is recorded in the latch. */
    int (*fill)(void *reader, size_t run, size_t end);

    /* Leaves the slices before this one. Their records have been put to the sink, and nobody looks at
     * their keys any more. -1: no memory, and the error is recorded in the latch. */
    int (*leave)(void *reader, size_t run, size_t slice);

    /* Begins to fill the buffers that the sink has passed. */
    void (*refill)(void *reader);

    /* Fills a buffer that no thread has claimed. False: there is none. */
    bool (*help)(void *reader);
};

/* The two of a sort; over MPI also two that lie between parts of them. */
enum { MERGE_ARENAS_MAX = 6 };

struct merge_ring_options {
    const struct bam_arena *arenas[MERGE_ARENAS_MAX];   /* sublists sorted; in the order of the input */
    size_t n_arenas;
    struct merge_runs runs;      /* older than the arenas' records */
    struct record_sink *sink;    /* whose blocks the main thread deflates while it waits */
    uint32_t n_ranges;           /* in the ring; at least 2. Each has a list */
    uint32_t n_spare;            /* lists more, so that the sink may use lists while tasks go on */
    uint32_t n_records;          /* records that a range's list holds: merged in one pass */
    int n_threads;
    struct latch *latch;
    struct stats *stats;
};

/* NULL: no memory, and the error is recorded in the latch. */
struct merge_ring *merge_ring_open(const struct merge_ring_options *options);

/* Call it only when all tasks are done. */
void merge_ring_close(struct merge_ring *ring);

/* Gives the next merged records, in order: a range, or as much of one as its list holds. Put them to the sink before
 * the next call. If no list is to spare, that call gives this one to a task again; then it has no `fit`. Plans ranges
 * and works while it waits. Call it on the main thread. 1: *list is set; 0: that was all; -1: stop. */
int merge_ring_next(struct merge_ring *ring, struct record_list *list);

/* Bytes of memory that a ring takes. */
size_t merge_ring_memory(uint32_t n_ranges, uint32_t n_spare, uint32_t n_records, size_t n_sources);

#endif
