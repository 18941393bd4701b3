/* SPDX-License-Identifier: MIT */
/* Records on their way to the ranks that write them. All records that one rank sends to another are a stream; a rank
 * takes one stream after the other.
 *
 *   where all records are in memory (record_shares.h), rank r of n, which keeps its own records:
 *     sends to        r - 1, r - 2, ..., 0, n - 1, ..., r + 1
 *     receives from   r + 1, ..., n - 1 | 0, ..., r - 1          at each step every rank sends, and every rank receives
 *
 *   where some have left memory, so that a rank merges its records, once, in order:
 *     sends to        0, 1, ..., n - 1
 *     receives from   0, 1, ..., n - 1 |                         those of r are for r, too
 *
 * What comes is one input, and what comes behind the bar another. In each of them the ranks are in the order of the
 * input, so records that tie are, too. Each stream waits for the one before it of its sender and of its receiver, and
 * for no other: so some stream can always go on. */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include "base/byte_window.h"
#include "mpi/mpi_team.h"
#include "mpi/record_shares.h"

struct exchange;
struct merge_ring;
struct minhash;
struct sort_rule;

/* The records that this rank sends. */
struct exchange_records {
    const struct record_shares *shares;     /* if all ranks have theirs in memory; else NULL, and ... */
    struct merge_ring *merge;               /* ... these, with */
    const struct splitters *splitters;
    const struct sort_rule *rule;           /* this and the next make the keys of which the splitters are */
    const struct minhash *minhash;          /* of -M; else NULL */
    bool keys_decide;                       /* records of equal keys tie */
};

struct exchange_options {
    struct mpi_team team;
    int n_threads;
    const struct latch *sender;  /* of the merge */
    struct latch *latch;         /* of who reads */
};

/* NULL: out of memory, and the error is recorded in the latch. */
struct exchange *exchange_open(const struct exchange_options *options);

/* Call it before anybody reads from the window. */
void exchange_start(struct exchange *exchange, const struct exchange_records *records);

/* Call it when nobody reads from the window any more, after the team: late tasks still look at messages. */
void exchange_close(struct exchange *exchange);

enum exchange_count {
    EXCHANGE_LISTED,             /* for whatever rank */
    EXCHANGE_SENT, EXCHANGE_RECEIVED,   /* to and from other ranks */
    N_EXCHANGE_COUNTS,
};

/* Bytes so far. */
uint64_t exchange_bytes(const struct exchange *exchange, enum exchange_count count);

/* The records for this rank: two inputs, so it ends twice. The second end comes when this rank has sent all of its own,
 * too. Only the main thread of the team may ask for more. */
struct byte_window *exchange_window(struct exchange *exchange);

#endif
