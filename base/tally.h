/* SPDX-License-Identifier: MIT */
/* The number of records that a producer took or gave, and their checksum. Consecutive producers must agree: each takes
 * the records that the one before it gave. This check makes it safe to delete the input. */
#ifndef TALLY_H
#define TALLY_H

#include <stdbool.h>
#include <stdint.h>

struct latch;

/* A zero-initialised tally has no records. */
struct tally {
    uint64_t n;                  /* records */
    uint64_t checksum;           /* sum of record_checksum() over them, modulo 2^64 */
    bool counts_only;            /* there is no checksum */
};

static inline void tally_add(struct tally *sum, struct tally more)
{
    sum->n += more.n;
    sum->checksum += more.checksum;
    sum->counts_only |= more.counts_only;
}

/* Compares the records that came to some place with those that came out of it: only the numbers if one of them has no
 * checksum. For the message: where is the place, as in "in the merge" or "on the way into the sort", and path is the
 * input. -1 if they differ, and the error is recorded in the latch. */
int tally_compare(struct tally in, struct tally out, const char *where, const char *path, struct latch *latch);

#endif
