/* SPDX-License-Identifier: MIT */
/* The number of pairs of each insert size (IS), in three orientations. An array counts sizes below a limit. A hash
 * table counts the larger sizes, of which there are few. */
#ifndef STATS_INSERTS_H
#define STATS_INSERTS_H

#include <stddef.h>
#include <stdint.h>
#include "base/prefetch.h"

enum stats_orientation { STATS_INWARD, STATS_OUTWARD, STATS_OTHERWISE, STATS_ORIENTATIONS };

struct insert_count {
    uint32_t size;
    uint64_t n[STATS_ORIENTATIONS];
};

/* A zero-initialised struct is empty. */
struct stats_inserts {
    uint64_t (*near)[STATS_ORIENTATIONS];    /* INSERTS_NEAR elements */
    uint64_t used;               /* a bit for each INSERTS_BLOCK elements; not set: all of them are 0 */
    struct insert_count *far;    /* a hash table; a slot is free if its n are all 0. When closed: sorted by size */
    size_t n_far, room;
};

enum { INSERTS_NEAR = 8192, INSERTS_BLOCK = INSERTS_NEAR / 64 };

void stats_inserts_free(struct stats_inserts *s);

/* Bytes of memory for sizes up to the limit of the array. */
size_t stats_inserts_memory(void);

/* Adds n to the counts of this size. Returns -1 if out of memory. */
int stats_inserts_add(struct stats_inserts *s, uint32_t size, const uint64_t n[STATS_ORIENTATIONS]);

/* Counts one pair. Returns -1 if out of memory. */
static inline int stats_inserts_count(struct stats_inserts *s, uint32_t size, enum stats_orientation way)
{
    uint64_t n[STATS_ORIENTATIONS] = {0};
    if (size < INSERTS_NEAR && s->used >> size / INSERTS_BLOCK & 1) {
        s->near[size][way]++;
        return 0;
    }
    n[way] = 1;
    return stats_inserts_add(s, size, n);
}

/* Call it some time before stats_inserts_count(): the counts of most sizes are seldom in the cache. */
PREFETCH_FN void stats_inserts_prefetch(const struct stats_inserts *s, uint32_t size)
{
    if (s->near && size < INSERTS_NEAR)
        __builtin_prefetch(s->near[size], 1);
}

/* Adds the counts of `from`. Returns -1 if out of memory. */
int stats_inserts_join(struct stats_inserts *s, const struct stats_inserts *from);

/* Sorts the sizes. Nothing may be added afterwards. */
void stats_inserts_close(struct stats_inserts *s);

/* Returns the counts of the next size from *at on that was counted, and sets *size. Returns NULL if there is none. Call
 * it after stats_inserts_close(). *at must be 0 at first. */
const uint64_t *stats_inserts_next(const struct stats_inserts *s, size_t *at, uint32_t *size);

#endif
