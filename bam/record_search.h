/* SPDX-License-Identifier: MIT */
/* Looking for the place from which records follow each other, in bytes of a stream of which nobody knows where a record
 * begins. Serial.
 *
 * Bytes may be made so that records seem to begin everywhere, and each chain of them breaks at the end. So a search has
 * a budget: a few times its bytes are looked at, and then it finds nothing more. Who searches can do without. */
#ifndef RECORD_SEARCH_H
#define RECORD_SEARCH_H

#include <stddef.h>
#include <stdint.h>
#include "bam/bam_record.h"

struct record_search {
    const uint8_t *p;            /* the bytes, n of them */
    size_t n;
    int32_t n_ref;               /* number of @SQ lines */
    uint64_t left;               /* bytes of records that may still be looked at */
};

struct record_search record_search_begin(const uint8_t *p, size_t n, int32_t n_ref);

/* The next place in [from, last) where what follows is a record that checks out; `last` if there is none, or if the
 * budget is used up. */
size_t record_search_next(struct record_search *search, size_t from, size_t last);

/* Counts a chain of records that was walked from `from` and broke at `at`. */
void record_search_walked(struct record_search *search, size_t from, size_t at);

/* Records that lie one after another: from where the first one begins to where the last whole one ends. */
struct record_chain {
    size_t begin, end;
    uint64_t n;
};

/* The first place in the first 16 KiB of p[n] from which records follow each other to the end, the last one perhaps cut
 * there. Their lengths are followed; of the first one and of the one that is cut all is checked that is there. If there
 * is no such place, or looking takes too long, the chain is empty and begins at n. */
struct record_chain record_search_chain(const uint8_t *p, size_t n, int32_t n_ref);

#endif
