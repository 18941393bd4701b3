/* SPDX-License-Identifier: MIT */
/* Merges sorted runs with a heap. A merge owns no keys; it only points to some of a sorted list. So several merges
 * over different keys of the same sublists may run side by side. */
#ifndef RUN_MERGE_H
#define RUN_MERGE_H

#include <stddef.h>
#include "order/bam_key.h"

/* Sorted keys that are in memory: of a sublist, or of a slice of a run. */
struct merge_source {
    const struct bam_key *next, *end;   /* keys not yet given out */
    const uint8_t *base;         /* what their places are relative to */
};

/* Called when a source has given out all its keys and the caller is done with the last one. 1: *source
 * has new keys; 0: the run is at its end; -1: stop. */
typedef int run_merge_more_fn(void *arg, size_t number, struct merge_source *source);

/* The next key of one source, as the heap holds it. */
struct merge_head {
    uint64_t sort;
    const uint8_t *record;
    size_t source;
};

struct run_merge {
    const struct sort_rule *rule;   /* compares records of equal keys; NULL: they are not compared */
    struct merge_source *sources;
    size_t n_sources;
    struct merge_head *heap;     /* smallest first */
    size_t n;
    bool given;                  /* run_merge_next() gave out the first head */
    run_merge_more_fn *more;     /* NULL: a source ends with its keys */
    void *more_arg;
};

/* The key that comes next in the merged order. */
struct merge_item {
    struct bam_key key;
    const uint8_t *base;         /* what the key's place is relative to */
    size_t source;
};

/* Makes a merge with room for max sources, of which n_runs are there, without keys: `more` gives them theirs. -1: no
 * memory. */
int run_merge_init(struct run_merge *merge, const struct sort_rule *rule, size_t max, size_t n_runs);
void run_merge_free(struct run_merge *merge);

/* Makes it once more what it is after run_merge_init(). */
void run_merge_reset(struct run_merge *merge, size_t n_runs);

/* Adds a source after those added before. Of equal records those of the earlier source come first;
 * those of one source come in the order of its keys. */
void run_merge_add(struct run_merge *merge, struct merge_source source);

/* Call after the last source is added, before the first key is taken. more may be NULL. It is called
 * at once for sources that are empty. -1: `more` returned -1. */
int run_merge_start(struct run_merge *merge, run_merge_more_fn *more, void *arg);

/* Gives the next key in order. 1: *item is it; 0: end; -1: `more` returned -1. */
int run_merge_next(struct run_merge *merge, struct merge_item *item);

#endif
