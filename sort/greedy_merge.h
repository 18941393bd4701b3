/* SPDX-License-Identifier: MIT */
/* The merge of runs that are not in order: it repeatedly gives the smallest of the records that are next in their runs.
 * Its result cannot be cut into ranges, so the main thread merges alone. */
#ifndef GREEDY_MERGE_H
#define GREEDY_MERGE_H

#include "base/record_stream.h"
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
    struct run_merge merge;
    size_t *next;                /* for each run: the slice that comes next; the slice before it is being merged */
    size_t awaited, end_awaited; /* runs [awaited, end_awaited) have given all records of their slices, so their next
                                  * slices must be in memory before the merge continues */
    bool is_begun;               /* the heap has the first record of each run */
    bool is_out;                 /* the list was given out */
};

/* Continues where a merge of ordered runs has stopped. first[] has the first slice of each run with records that may
 * not be merged yet. -1: out of memory, and the error is recorded in the latch; close it anyway. */
int greedy_merge_open(struct greedy_merge *greedy, const size_t *first);
void greedy_merge_close(struct greedy_merge *greedy);

/* As advance() and take() of struct list_stream. */
enum chunk_state greedy_merge_advance(struct greedy_merge *greedy);
void greedy_merge_take(struct greedy_merge *greedy, struct record_list *list);

#endif
