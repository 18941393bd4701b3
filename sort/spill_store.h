/* SPDX-License-Identifier: MIT */
/* The store of packed slices that are not in use. It keeps them in memory as long as there is spare memory, then in one
 * temporary file per directory. The files have no name (O_TMPFILE, or unlinked at once), so no file remains after the
 * process ends. */
#ifndef SPILL_STORE_H
#define SPILL_STORE_H

#include <stddef.h>
#include <stdint.h>

struct engine;

/* One slice. */
struct spill_place {
    uint64_t offset;
    uint32_t size;
    uint32_t volume;             /* memory or one of the files */
    uint64_t first_key;          /* sort key of its first record; the caller of the put sets this field and the next
                                  * one */
    uint64_t hash;               /* 0: the slice is packed; else it is one large record, with this hash */
};

/* Bytes to be put. */
struct spill_bytes {
    const void *data;
    size_t n;
};

struct spill_store_options {
    const char *const *prefixes; /* each as described in temp_prefix.h */
    size_t n_prefixes;           /* at least one */
    const struct engine *engine;
};

/* NULL: out of memory, and the error is recorded in the latch. */
struct spill_store *spill_store_open(const struct spill_store_options *options);
void spill_store_close(struct spill_store *store);

/* Makes the files. *free_bytes receives the sum of the free space in all their file systems. Call it before the first
 * put, from the thread that receives the signals. -1: failed, and the error is recorded in the latch. */
int spill_store_prepare(struct spill_store *store, uint64_t *free_bytes);

/* Lets the store keep the first `size` bytes in memory; 0: none. Call it before the first put. If that memory is not
 * available, everything goes to the files. */
void spill_store_use_memory(struct spill_store *store, size_t size);

/* Keeps data[n]. Any thread may call it. When a directory is full, the store continues in the next one. -1: failed, and
 * the error is recorded in the latch. */
int spill_store_put(struct spill_store *store, const void *data, size_t n, struct spill_place *place);

/* Stores two byte strings as one. */
int spill_store_put_both(struct spill_store *store, const struct spill_bytes both[2], struct spill_place *place);

/* Fills data[place.size]. Any thread may call it. -1: failed, and the error is recorded in the latch. */
int spill_store_get(struct spill_store *store, struct spill_place place, void *data);

/* Announces that the slice will be read soon. */
void spill_store_expect(struct spill_store *store, struct spill_place place);

/* Removes the slice. Gives its space back to the file system where that is possible. Any thread may call it. */
void spill_store_free(struct spill_store *store, struct spill_place place);

/* Records in the latch that the bytes read from this place differ from those that were put there. Always returns -1. */
int spill_store_damaged(struct spill_store *store, struct spill_place place);

/* The clocks from the options, for code that packs and unpacks. */
struct clocks *spill_store_clocks(const struct spill_store *store);

#endif
