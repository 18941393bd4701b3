/* SPDX-License-Identifier: MIT */
/* A sorted run outside the arena: its slices lie in the store, in order. Serial code to write a run, to load its
 * slices, and to merge several runs into one. */
#ifndef SPILL_RUN_H
#define SPILL_RUN_H

#include <stdatomic.h>
#include "base/byte_buffer.h"
#include "sort/spill_slice.h"
#include "sort/spill_store.h"

struct spill_run {
    struct spill_place *slices;
    size_t n, max;
    uint64_t bytes;              /* bytes of the packed slices */
    size_t largest;              /* bytes in memory of its largest slice */
};

/* Appends other's slices to run; other is empty afterwards. -1: out of memory. */
int spill_run_append(struct spill_run *run, struct spill_run *other);
void spill_run_free(struct spill_run *run);

/* Frees the run and the space of its slices. */
void spill_run_remove(struct spill_run *run, struct spill_store *store);

/* Writes a run, record by record. A record that is larger than a slice is a slice of its own. It is not packed, so it
 * needs no intermediate memory: it is stored directly from the place where it lies, and loaded directly to the place
 * where it is used. */
struct spill_writer {
    struct spill_packer *packer;
    struct spill_store *store;
    struct spill_run *run;
    struct latch *latch;
    uint64_t first_key;          /* first key of the slice that is being made; only these functions use it */
};

/* Puts the next record, in order. -1: failed, and the error is recorded in the latch. */
int spill_writer_put(struct spill_writer *writer, uint64_t sort_key, const uint8_t *record, size_t size);

/* Writes the records that are left in the packer. -1: failed, and the error is recorded in the latch. */
int spill_writer_end(struct spill_writer *writer);

/* A packed slice is read to this memory before it is unpacked. One thread at a time uses it. */
struct spill_loader {
    struct byte_buffer packed;
    struct record_unpacker *unpacker;   /* made when first needed */
};

void spill_loader_free(struct spill_loader *loader);

/* Returns the bytes that a loader takes: a packed slice is at most as large as the slice. */
size_t spill_loader_memory(size_t slice_size);

/* Mapped memory; pages that are not written to take no memory. */
struct spill_extra {
    uint8_t *memory;             /* NULL: there is no extra memory */
    size_t size;
};

void spill_extra_free(struct spill_extra *extra);

/* Memory for one slice at a time. */
struct spill_buffer {
    struct spill_slice slice;    /* the slice that is there now */
    uint8_t *home;               /* home_size bytes; address and size are multiples of 16; not owned */
    size_t home_size;
    struct spill_extra extra;    /* for a slice that does not fit home, or while home is in use */
};

/* Loads the slice at place. It goes to home if it fits and home is free, else to a new extra; the
 * caller has freed or kept the old extra. -1: failed, and the error is recorded in the latch. */
int spill_load(struct spill_store *store, struct spill_place place, struct spill_loader *loader,
               struct spill_buffer *buffer, bool home_is_free, struct latch *latch);

/* These functions load a large record in two steps: first the key and the fields that are compared, then bases and
 * qualities, which the hash needs. Until the second step, the pages of bases and qualities are not touched. */
int spill_load_head(struct spill_store *store, struct spill_place place, struct spill_buffer *buffer, bool home_is_free,
                    struct latch *latch);
int spill_load_body(struct spill_store *store, struct spill_place place, const struct spill_buffer *buffer);

struct spill_merge {
    struct spill_run *runs;      /* in input order */
    size_t n;
    const struct sort_rule *rule;   /* see struct run_merge */
    uint8_t *memory;             /* n * slice_size bytes, at a multiple of 16 */
    size_t slice_size;           /* should be the size of the runs' largest slice */
    uint64_t from, to;           /* only records with sort keys from `from` to `to`, inclusive, are merged */
    struct spill_loader *loader;
    struct spill_writer writer;
    const atomic_bool *cancelled;
};

/* Merges runs into one. 1: done; 0: cancelled; -1: failed, and the error is recorded in the latch. */
int spill_merge(const struct spill_merge *merge);

#endif
