/* SPDX-License-Identifier: MIT */
/* Records that wait and do not fit into memory: packed, in temporary files (sort/spill_run.h). */
#ifndef MARKED_STORE_H
#define MARKED_STORE_H

#include <stddef.h>
#include <stdint.h>
#include "sort/spill_run.h"

struct dup_store;
struct marked_store;
struct record_slice;

struct marked_store_options {
    struct spill_store_options store;    /* store of the files */
    size_t slice_size;           /* usual bytes of records and keys that are stored at once */
};

/* NULL: out of memory, and the error is recorded in the latch. */
struct marked_store *marked_store_open(const struct marked_store_options *options);
void marked_store_close(struct marked_store *store);

/* Makes the files at the first call. Main thread only. -1: failed, and the error is recorded in the latch. */
int marked_store_prepare(struct marked_store *store);

/* Writes the records to *run, which is empty, and frees their memory. On any thread. -1: failed, and the error is
 * recorded in the latch. */
int marked_store_put(struct marked_store *store, struct record_slice *records, struct spill_run *run);

/* Reads them back. The checksum in *records was kept. */
int marked_store_get(struct marked_store *store, struct spill_run *run, struct record_slice *records);

/* Lets losses use the store: fills *losses except `most` and is_open. marked_store_prepare() must be called before any
 * are stored. */
void marked_store_lend(struct marked_store *store, struct dup_store *losses);

/* Bytes of memory that it needs for slices of this size. */
size_t marked_store_memory(int n_threads, size_t slice_size);

#endif
