/* SPDX-License-Identifier: MIT */
/* How many records a producer took, or gave, and which. Neighbours must agree: what one gave, the next one took.
 * That is what makes it safe to delete the input. */
#ifndef TALLY_H
#define TALLY_H

#include <stdint.h>

struct latch;

/* A zero-initialised tally is one of no records. */
struct tally {
    uint64_t n;                  /* records */
    uint64_t checksum;           /* sum of record_checksum() over them, modulo 2^64; 0 throughout a comparison if only
                                  * numbers are compared */
};

static inline void tally_add(struct tally *sum, struct tally more)
{
    sum->n += more.n;
    sum->checksum += more.checksum;
}

/* Whether what came out of a producer is what came in. producer: its name, for the message; path: of the input. -1 if
 * it is not, and the error is recorded in the latch. */
int tally_compare(struct tally in, struct tally out, const char *producer, const char *path, struct latch *latch);

#endif
