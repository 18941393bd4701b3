/* SPDX-License-Identifier: MIT */
/* Finds mates that do not follow one another: each leaves a number here (read/fixed_records.h), and two that differ in
 * the lowest bit alone are the halves of a pair. All numbers are kept, so none is missed. They are hashes of 63 bits:
 * of n mates that are alone, half of them first ones, some two meet by chance once in 2^65 / n^2 inputs.
 *
 *   numbers --> ordered table --(when it is full)--> sorted runs on disk --(at the end, range by range)--> table
 *
 * The table grows with the numbers. Only the main thread calls these functions. */
#ifndef ORPHANS_H
#define ORPHANS_H

#include <stddef.h>
#include <stdint.h>
#include "sort/spill_store.h"

struct orphans;

struct orphans_options {
    struct spill_store_options store;    /* of the runs */
    size_t memory;               /* bytes that it may take; it takes less while there are few numbers */
    const char *path;            /* for messages */
};

/* NULL: out of memory, and the error is recorded in the latch. */
struct orphans *orphans_open(const struct orphans_options *options);
void orphans_close(struct orphans *orphans);

/* Takes n numbers, which are not 0: a fixed_orphans_fn for struct orphans. -1: one of them is the other half of one
 * that came before, or failed; the error is recorded in the latch. */
int orphans_put(void *orphans, const uint64_t *mates, size_t n);

/* There are no more: the same of numbers that left memory meanwhile. Gives back the memory of the others. */
int orphans_end(struct orphans *orphans);

#endif
