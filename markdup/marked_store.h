/* SPDX-License-Identifier: MIT */
/* Records that wait longer than memory allows: packed, in temporary files (sort/spill_run.h). */
#ifndef MARKED_STORE_H
#define MARKED_STORE_H

#include <stddef.h>
#include <stdint.h>
#include "sort/spill_run.h"

struct dup_store;
struct marked_store;
struct record_slice;

struct marked_store_options {
    struct spill_store_options store;    /* of the files */
    size_t slice_size;           /* bytes of records and keys that mostly leave at once */
    int n_threads;               /* of the team */
};

/* NULL: out of memory, and the error is recorded in the latch. */
struct marked_store *marked_store_open(const struct marked_store_options *options);
void marked_store_close(struct marked_store *store);

/* Makes the files, the first time. Main thread. -1: failed, and the error is recorded in the latch. */
int marked_store_prepare(struct marked_store *store);

/* Writes the records to *run, which is empty, and gives their memory back. In any task. -1: failed, and the error is
 * recorded in the latch. */
int marked_store_put(struct marked_store *store, struct record_slice *records, struct spill_run *run);

/* The other way round. The checksum of *records stayed there. */
int marked_store_get(struct marked_store *store, struct spill_run *run, struct record_slice *records);

/* Lets losses go there, too: fills *losses, but for `most` and is_open. It is prepared before any goes. */
void marked_store_lend(struct marked_store *store, struct dup_store *losses);

/* Bytes of memory that it takes for slices of this size. */
size_t marked_store_memory(int n_threads, size_t slice_size);

#endif
