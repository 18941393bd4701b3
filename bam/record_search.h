/* SPDX-License-Identifier: MIT */
/* Finds the place from which records follow each other in a stream, when the start of no record is known. Serial.
 *
 * Bytes may be made so that records seem to begin everywhere and each chain of them breaks at the end. So a search has
 * a budget, a few times the number of its bytes; once that is used up it finds nothing more. Callers must be able to do
 * without the result. */
#ifndef RECORD_SEARCH_H
#define RECORD_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "bam/bam_record.h"

struct record_search {
    const uint8_t *p;            /* the n bytes to search */
    size_t n;
    int32_t n_ref;               /* number of @SQ lines */
    uint64_t left;               /* bytes of records that may still be read */
};

struct record_search record_search_begin(const uint8_t *p, size_t n, int32_t n_ref);

/* The next place in [from, last) where a record passes the check; `last` if there is none or the budget is used up. */
size_t record_search_next(struct record_search *search, size_t from, size_t last);

/* Subtracts a chain of records that was walked from `from` and broke at `at` from the budget. */
void record_search_walked(struct record_search *search, size_t from, size_t at);

/* Records that follow one another: from the start of the first to the end of the last complete one. */
struct record_chain {
    size_t begin, end;
    uint64_t n;
};

/* Finds the records of p[n]. They begin at the first place in its first 16 KiB from which records follow each other to
 * the end; the last record may be cut. Only the lengths are followed; the first record and the one that is cut are
 * checked as far as their bytes are available. If there is no such place, or the budget is used up, the chain is empty
 * and begins at n. */
struct record_chain record_search_chain(const uint8_t *p, size_t n, int32_t n_ref);

/* Finds a start that the caller cannot verify: the first place in p[n] from which records follow each other to the end.
 * Each record is checked. At least two of them are complete, and the last one may be cut. ends: the stream ends with
 * p[n], so the last record is complete, and one is enough. Returns n if there is no such place, or the budget is used
 * up. */
size_t record_search_start(const uint8_t *p, size_t n, int32_t n_ref, bool ends);

#endif
