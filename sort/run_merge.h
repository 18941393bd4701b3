/* SPDX-License-Identifier: MIT */
/* Merges sorted runs with a heap. A merge does not own keys; it only points to some keys of a sorted list. So several
 * merges over different keys of the same sublists may run side by side. */
#ifndef RUN_MERGE_H
#define RUN_MERGE_H

#include <stddef.h>
#include "order/bam_key.h"

/* One way of a k-way merge: sorted keys in memory, which belong to a sublist or to a slice of a run. */
struct merge_way {
    const struct bam_key *next, *end;   /* keys not yet given out */
    const uint8_t *base;         /* the keys' places are relative to this */
};

/* Called when a way has given out all its keys and the caller no longer needs the last one. 1: *way has new keys; 0:
 * the run is at its end; -1: stop. */
typedef int run_merge_more_fn(void *arg, size_t number, struct merge_way *way);

/* The next key of one way, as the heap holds it. */
struct merge_head {
    uint64_t sort;
    const uint8_t *record;
    size_t way;
};

struct run_merge {
    const struct sort_rule *rule;   /* compares records of equal keys; NULL: they are not compared */
    struct merge_way *ways;
    size_t n_ways;
    struct merge_head *heap;     /* smallest first */
    size_t n;
    bool given;                  /* run_merge_next() gave out the first head */
    run_merge_more_fn *more;     /* NULL: a way ends with its keys */
    void *more_arg;
};

/* The key that comes next in the merged order. */
struct merge_item {
    struct bam_key key;
    const uint8_t *base;         /* the key's place is relative to this */
    size_t way;
};

/* Makes a merge with room for max ways. It begins with n_runs ways without keys; `more` gives them their keys. -1: no
 * memory. */
int run_merge_init(struct run_merge *merge, const struct sort_rule *rule, size_t max, size_t n_runs);
void run_merge_free(struct run_merge *merge);

/* Resets the merge to its state after run_merge_init(). */
void run_merge_reset(struct run_merge *merge, size_t n_runs);

/* Adds a way after those added before. Among equal records, the records of the earlier way come first; the records of
 * one way come in the order of its keys. */
void run_merge_add(struct run_merge *merge, struct merge_way way);

/* Call after the last way is added, before the first key is taken. more may be NULL. It is called at once for each way
 * that is empty. -1: `more` returned -1. */
int run_merge_start(struct run_merge *merge, run_merge_more_fn *more, void *arg);

/* Gives the next key in order. 1: *item is that key; 0: end; -1: `more` returned -1. */
int run_merge_next(struct run_merge *merge, struct merge_item *item);

#endif
