/* SPDX-License-Identifier: MIT */
/* Merging sorted sublists by a heap. A merge owns no keys: it is a set of
 * ranges, so several merges over slices of the same sublists may run side by side. */
#ifndef RUN_MERGE_H
#define RUN_MERGE_H

#include <stddef.h>
#include "bam_arena.h"

/* What is left of one sublist, as it stands in the heap. */
struct merge_run {
    struct bam_key head;         /* the next key: a copy, so that comparing touches the heap only */
    const struct bam_key *next;  /* the one after it */
    const struct bam_key *end;
};

struct run_merge {
    struct merge_run *heap;      /* smallest head first */
    size_t n;
    struct bam_key_order order;
};

/* Merges the n sublists, each sorted by order. Ties go by place, which is input order.
 * Returns 0; -1 when memory runs out. */
int run_merge_init(struct run_merge *merge, const struct bam_sublist *sublists, size_t n,
                   struct bam_key_order order);
void run_merge_free(struct run_merge *merge);

/* The next key in order; 0 at the end. */
int run_merge_next(struct run_merge *merge, struct bam_key *key);

#endif
