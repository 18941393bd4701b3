/* SPDX-License-Identifier: MIT */
/* Where packed slices are while they are not in use: in memory as long as there
 * is some to spare, then in one temporary file per directory. The files have no
 * name (O_TMPFILE, or removed at once), so that no exit of any kind leaves one
 * and no two sorts can meet in one. */
#ifndef SPILL_STORE_H
#define SPILL_STORE_H

#include <stddef.h>
#include <stdint.h>

struct latch;
struct spill_store;
struct stats;

/* Where one packed slice lies. */
struct spill_place {
    uint64_t offset;
    uint32_t size;
    uint32_t volume;             /* memory or one of the files */
};

struct spill_store_options {
    const char *const *prefixes; /* a directory, or DIR/NAME: files in DIR */
    size_t n_prefixes;           /* at least one */
    struct latch *latch;
    struct stats *stats;         /* may be NULL */
};

/* NULL: no memory, told to the latch. */
struct spill_store *spill_store_open(const struct spill_store_options *options);
void spill_store_close(struct spill_store *store);

/* Makes the files; in *free_bytes what is free in all of them. Before the first
 * put, by the thread that gets the signals. -1: told to the latch. */
int spill_store_prepare(struct spill_store *store, uint64_t *free_bytes);

/* Lets the store keep the first `size` bytes in memory, 0: none. Before the first
 * put. Where there is no such memory, all goes to the files. */
void spill_store_use_memory(struct spill_store *store, size_t size);

/* Keeps data[n]; any thread. A directory that is full is left for the next one.
 * -1: told to the latch. */
int spill_store_put(struct spill_store *store, const void *data, size_t n, struct spill_place *place);

/* Fills data[place.size]; any thread. -1: told to the latch. */
int spill_store_get(struct spill_store *store, struct spill_place place, void *data);

/* Tells that it will be got soon. */
void spill_store_expect(struct spill_store *store, struct spill_place place);

/* Forgets it; its space goes back to the file system where that can be. Any thread. */
void spill_store_free(struct spill_store *store, struct spill_place place);

/* Says that the bytes of this place, on their way to being used, are not those
 * that were put there. Returns -1, told to the latch. */
int spill_store_damaged(struct spill_store *store, struct spill_place place);

/* What it was opened with, for those who pack and unpack. */
struct stats *spill_store_stats(const struct spill_store *store);

#endif
