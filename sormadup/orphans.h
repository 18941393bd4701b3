/* SPDX-License-Identifier: MIT */
/* Finds mates that are not adjacent: each leaves a number here (read/fixed_records.h), and two numbers that differ only
 * in the lowest bit are those of a pair. All numbers are kept, so none is missed. They are hashes of 63 bits: with n
 * orphans, half of them first ends, two collide by chance once in 2^65 / n^2 inputs.
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
    struct spill_store_options store;    /* store of the runs */
    size_t memory;               /* bytes that it may use; it uses less while there are few numbers */
    const char *path;            /* for messages */
};

/* NULL: out of memory, and the error is recorded in the latch. */
struct orphans *orphans_open(const struct orphans_options *options);
void orphans_close(struct orphans *orphans);

/* Takes n numbers, none of them 0: a fixed_orphans_fn for struct orphans. -1: one of them is that of the mate of an
 * earlier read, or something failed; the error is recorded in the latch. */
int orphans_put(void *orphans, const uint64_t *mates, size_t n);

/* Does the same for numbers that were spilled, after the last one. Frees the memory of the others. */
int orphans_end(struct orphans *orphans);

#endif
