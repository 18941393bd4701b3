/* SPDX-License-Identifier: MIT */
/* How many pairs have which insert size (IS), in three orientations. Sizes up to some limit have an array, the
 * rest, of which there are few, a hash table. */
#ifndef STATS_INSERTS_H
#define STATS_INSERTS_H

#include <stddef.h>
#include <stdint.h>

enum stats_orientation { STATS_INWARD, STATS_OUTWARD, STATS_OTHERWISE, STATS_ORIENTATIONS };

struct insert_count {
    uint32_t size;
    uint64_t n[STATS_ORIENTATIONS];
};

/* A zero-initialised struct is empty. */
struct stats_inserts {
    uint64_t (*near)[STATS_ORIENTATIONS];    /* INSERTS_NEAR of them */
    struct insert_count *far;    /* a hash table; a slot whose n are all 0 is free. When closed: in order of size */
    size_t n_far, room;
};

enum { INSERTS_NEAR = 8192 };

void stats_inserts_free(struct stats_inserts *s);

/* Bytes of memory for sizes up to the limit of the array. */
size_t stats_inserts_memory(void);

/* -1: out of memory. */
int stats_inserts_add(struct stats_inserts *s, uint32_t size, const uint64_t n[STATS_ORIENTATIONS]);

/* Adds what `from` has. -1: out of memory. */
int stats_inserts_join(struct stats_inserts *s, const struct stats_inserts *from);

/* Puts the sizes in order; nothing may be added any more. */
void stats_inserts_close(struct stats_inserts *s);

/* The next size from *at on that was counted, and its counts; NULL: there is none. After stats_inserts_close().
 * *at must be 0 at first. */
const uint64_t *stats_inserts_next(const struct stats_inserts *s, size_t *at, uint32_t *size);

#endif
