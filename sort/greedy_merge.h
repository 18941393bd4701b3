/* SPDX-License-Identifier: MIT */
/* The merge of runs that are not in order: it repeatedly gives the smallest of the records that are next in their runs.
 * Its result cannot be cut into ranges, so the main thread merges alone. */
#ifndef GREEDY_MERGE_H
#define GREEDY_MERGE_H

#include "base/task_ring.h"
#include "sort/merge_runs.h"
#include "sort/run_cut.h"
#include "write/record_list.h"

struct engine;

struct greedy_merge {
    const struct merge_runs *runs;
    const struct sort_rule *rule;   /* see struct run_merge */
    const struct run_cut *from;  /* records before it are already merged; NULL: no records are merged ... */
    const size_t *taken;         /* ... and only the slices of each run before these have such records */
    uint32_t max;                /* records in a list */
    struct record_list list;     /* has room for `max` records; stays the caller's */
    const struct engine *engine;
    task_help_fn *help;          /* the main thread calls it while it waits for slices; its argument is help_arg */
    void *help_arg;
    struct run_merge merge;
    size_t *next;                /* for each run: the slice that comes next; the slice before it is being merged */
    bool has_crossed;            /* a run has reached its next slice, so the list should end */
    bool is_out;                 /* the list was given out */
};

/* Continues where a merge of ordered runs has stopped. first[] has the first slice of each run with records that may
 * not be merged yet. -1: out of memory, or a slice did not come, and the error is recorded in the latch; close it
 * anyway. */
int greedy_merge_open(struct greedy_merge *greedy, const size_t *first);
void greedy_merge_close(struct greedy_merge *greedy);

/* Like merge_ring_next(). */
int greedy_merge_next(struct greedy_merge *greedy, struct record_list *list);

#endif
