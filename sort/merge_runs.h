/* SPDX-License-Identifier: MIT */
#ifndef MERGE_RUNS_H
#define MERGE_RUNS_H

#include "sort/run_merge.h"

/* Runs that come into memory slice by slice, as the merge sees them: spilled runs (sort/run_reader.h), or sorted files
 * (merge/merged.h). The merge does not know how they are read; the module that reads them sets the functions. The
 * slices of a run are numbered from 0. They become ready one after the other, and the merge leaves them in the same
 * order. Only the main thread calls these functions, except for slice(). */
struct merge_runs {
    size_t n;                    /* runs, in input order; 0: there are no runs, and the fields below are not used */
    size_t n_buffers;            /* slices of each run that can be in memory at a time */
    size_t n_shared;             /* additional slices, of all runs together. A range takes such a slice only if the
                                  * slices that the next range needs are ready: the next range may have to end before
                                  * any slice is left */
    bool one_is_enough;          /* a range ends where a run's next slice is missing: some slices are very large, or
                                  * come from slow files */
    const bool *out_of_order;    /* becomes true when a record is found out of order: records that are already merged
                                  * stay merged, and from there on the merge is greedy (greedy_merge.h). NULL: never */
    void *reader;                /* the first argument of each function */

    /* Returns whether the run has this slice. *key is the sort key of its first record; the slice need not be in
     * memory. It is called for the first slice, and for a slice whose predecessor was ready. */
    bool (*first_key)(const void *reader, size_t run, size_t slice, uint64_t *key);

    /* Returns whether the slice is in memory. Ask for the slices of a run in order. idle: the main thread has nothing
     * else to do. In that case, if no buffer for the slice can become free by waiting, the slice is loaded to other
     * memory. */
    bool (*ready)(void *reader, size_t run, size_t slice, bool idle);

    /* The keys of a slice that is ready and not left. Any thread that got the number from the main thread
     * may call it. */
    struct merge_way (*slice)(const void *reader, size_t run, size_t slice);

    /* Returns whether the slice, which is ready, was loaded only in part: the fields by which records are compared.
     * NULL: every slice is loaded completely, and there is no fill(). */
    bool (*is_partial)(const void *reader, size_t run, size_t slice);

    /* Loads the rest of the partly loaded slices before `end`, which are to be put. 1: done; 0: not yet, because memory
     * will soon be free; -1: failed, and the error is recorded in the latch. */
    int (*fill)(void *reader, size_t run, size_t end);

    /* Releases all slices before this one. Their records have been put to the sink, and their keys are no longer used.
     * -1: out of memory, and the error is recorded in the latch. */
    int (*leave)(void *reader, size_t run, size_t slice);

    /* Begins to fill all buffers that the sink has passed. */
    void (*refill)(void *reader);

    /* Fills a buffer that no thread has claimed. False: there is no such buffer. */
    bool (*help)(void *reader);
};

#endif
