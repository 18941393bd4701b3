/* SPDX-License-Identifier: MIT */
/* Merging sorted runs by a heap. A merge owns no keys: it is a set of ranges, so
 * several merges over parts of the same sublists may run side by side. */
#ifndef RUN_MERGE_H
#define RUN_MERGE_H

#include <stddef.h>
#include "bam_arena.h"

/* What is at hand of one sorted run: a whole sublist, or a slice of a spilled run. */
struct merge_source {
    const struct bam_key *next, *end;   /* keys not given out yet */
    const uint8_t *base;         /* what their places are relative to */
};

/* Called when a source has given all its keys and the caller is done with the
 * last: 1: *source has new ones; 0: the run is at its end; -1: stop. */
typedef int run_merge_more_fn(void *arg, size_t number, struct merge_source *source);

/* The first key of one source, as it stands in the heap. */
struct merge_head {
    uint64_t sort;
    const uint8_t *record;
    size_t source;
};

struct run_merge {
    const struct sort_rule *rule;   /* compares records of equal keys; NULL: nothing does */
    struct merge_source *sources;
    size_t n_sources;
    struct merge_head *heap;     /* smallest first */
    size_t n;
    bool given;                  /* the first head was given out */
    run_merge_more_fn *more;     /* NULL: sources end with their keys */
    void *more_arg;
};

/* What is merged next. */
struct merge_item {
    struct bam_key key;
    const uint8_t *base;         /* what its place is relative to */
};

/* Room for max sources. -1: no memory. */
int run_merge_init(struct run_merge *merge, const struct sort_rule *rule, size_t max);
void run_merge_free(struct run_merge *merge);

/* Without sources again, as after run_merge_init(). */
void run_merge_reset(struct run_merge *merge);

/* Adds a source behind those added before: of equal records those of the earlier
 * source come first, those of one source in the order of its keys. */
void run_merge_add(struct run_merge *merge, struct merge_source source);

/* After the last source, before the first key. more may be NULL; it is asked
 * at once for the sources that are empty. -1: more said so. */
int run_merge_start(struct run_merge *merge, run_merge_more_fn *more, void *arg);

/* The next key in order: 1; 0 at the end; -1: more said so. */
int run_merge_next(struct run_merge *merge, struct merge_item *item);

#endif
