/* SPDX-License-Identifier: MIT */
#ifndef MERGE_RUNS_H
#define MERGE_RUNS_H

#include "sort/run_merge.h"

/* Runs that come into memory slice by slice, as the merge sees them: spilled ones (sort/run_reader.h), or sorted files
 * (merge/merged.h). The merge does not know how; whoever reads them fills in the functions. The slices of a run are
 * numbered from 0. They become ready one after the other, and the merge leaves them in the same order. Only the main
 * thread calls these functions, but for slice(). */
struct merge_runs {
    size_t n;                    /* runs, in input order; 0: there are none, and nothing below is used */
    size_t n_buffers;            /* how many slices of each run can be in memory at a time */
    size_t n_shared;             /* and how many more, of all runs together. A range takes such a slice if those are
                                  * ready that the next range needs: it may have to end before any is left */
    bool one_is_enough;          /* a range ends where a run's next slice is not there: some are very large, or come
                                  * from slow files */
    void *reader;                /* the first argument of each function */

    /* Whether all that was read of the runs is in order. NULL: it is. What was merged when this turns false stays so;
     * from there on the merge is a greedy one (greedy_merge.h). */
    bool (*in_order)(const void *reader);

    /* Whether the run has this slice. *key is the sort key of its first record; the slice need not be in memory. It is
     * asked of a slice when the one before it was ready, or of the first one. */
    bool (*first_key)(const void *reader, size_t run, size_t slice, uint64_t *key);

    /* Whether the slice is in memory. Ask for the slices of a run in order. idle: the main thread has nothing else to
     * do; if no buffer for the slice can become free by waiting, it is then loaded to other memory. */
    bool (*ready)(void *reader, size_t run, size_t slice, bool idle);

    /* The keys of a slice that is ready and not left. Any thread that got the number from the main thread
     * may call it. */
    struct merge_way (*slice)(const void *reader, size_t run, size_t slice);

    /* Whether only so much of the slice, which is ready, was loaded as records are compared by. NULL: no slice is like
     * this, and there is no fill(). */
    bool (*is_partial)(const void *reader, size_t run, size_t slice);

    /* Loads the rest of those before `end`, which are to be put. 1: done; 0: not yet, because memory will soon be free;
     * -1: failed, and the error is recorded in the latch. */
    int (*fill)(void *reader, size_t run, size_t end);

    /* Leaves the slices before this one. Their records have been put to the sink, and nobody looks at
     * their keys any more. -1: out of memory, and the error is recorded in the latch. */
    int (*leave)(void *reader, size_t run, size_t slice);

    /* Begins to fill the buffers that the sink has passed. */
    void (*refill)(void *reader);

    /* Fills a buffer that no thread has claimed. False: there is none. */
    bool (*help)(void *reader);
};

#endif
