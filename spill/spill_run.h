/* SPDX-License-Identifier: MIT */
/* A sorted run outside the arena: its slices in the store, in order. Serial:
 * writing one, loading its slices, merging several into one. */
#ifndef SPILL_RUN_H
#define SPILL_RUN_H

#include <pthread.h>
#include <stdatomic.h>
#include "spill/spill_slice.h"
#include "spill/spill_store.h"

struct latch;
struct sort_rule;

struct spill_run {
    struct spill_place *slices;
    uint64_t *first_keys;        /* sort key of each slice's first record */
    size_t n, max;
    uint64_t bytes;              /* packed */
    size_t largest;              /* bytes in memory of its largest slice */
};

/* Puts other's slices behind run's; other is empty afterwards. -1: no memory. */
int spill_run_append(struct spill_run *run, struct spill_run *other);
void spill_run_free(struct spill_run *run);

/* Gives back the space of its slices, then frees it. */
void spill_run_remove(struct spill_run *run, struct spill_store *store);

/* Records larger than a slice make what threads keep for packing and unpacking
 * grow with them. So that this happens to one thread at a time, it waits at a
 * gate, and gives the memory back. One gate for packing, another for unpacking. */
struct spill_gate {
    pthread_mutex_t mutex;
    size_t large;                /* bytes of a record, or of a slice with one, that has to wait */
};

/* Writes a run, record by record. */
struct spill_writer {
    struct spill_packer *packer;
    struct spill_store *store;
    struct spill_run *run;
    struct spill_gate *gate;
    struct latch *latch;
    bool inside;                 /* of the gate; these two: the functions' own */
    uint64_t first_key;          /* of the slice that is being made */
};

/* The next record in order. -1: told to the latch. */
int spill_writer_put(struct spill_writer *writer, uint64_t sort_key, const uint8_t *record, size_t size);

/* Writes what is left in the packer. -1: told to the latch. */
int spill_writer_end(struct spill_writer *writer);

/* Instead of spill_writer_end(), to stop before it. */
void spill_writer_abandon(struct spill_writer *writer);

/* Where slices are read to before they are unpacked; one thread at a time. */
struct spill_loader {
    uint8_t *packed;             /* grows as needed */
    size_t max;
    struct record_unpacker *unpacker;   /* made when first needed */
    struct spill_gate *gate;
};

void spill_loader_free(struct spill_loader *loader);

/* A place for slices in memory, one after the other. */
struct spill_buffer {
    struct spill_slice slice;    /* the one that is there */
    uint8_t *home;               /* home_size bytes, a multiple of 16, at such an address; not owned */
    size_t home_size;
    uint8_t *extra;              /* for a slice that does not fit, or while home is in use; malloc */
};

/* Loads the slice at place: to home if it fits and may be used, else to a new
 * extra. -1: told to the latch. */
int spill_load(struct spill_store *store, struct spill_place place, struct spill_loader *loader,
               struct spill_buffer *buffer, bool home_is_free, struct latch *latch);

struct spill_merge {
    const struct spill_run *runs;   /* in input order */
    size_t n;
    const struct sort_rule *rule;   /* see struct run_merge */
    uint8_t *memory;             /* n * slice_size bytes, at a multiple of 16 */
    size_t slice_size;           /* should be the runs' largest */
    struct spill_loader *loader;
    struct spill_writer writer;
    const atomic_bool *cancelled;
};

/* Merges runs into one. 1: done; 0: cancelled; -1: told to the latch. */
int spill_merge(const struct spill_merge *merge);

#endif
