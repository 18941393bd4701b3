/* SPDX-License-Identifier: MIT */
/* Sends records to the ranks that write them. All records that one rank sends to another are a stream. A rank takes one
 * stream after the other.
 *
 *   If all records are in memory (record_shares.h), rank r of n keeps its own records. It
 *     sends to        r - 1, r - 2, ..., 0, n - 1, ..., r + 1
 *     receives from   r + 1, ..., n - 1 | 0, ..., r - 1          at each step every rank sends, and every rank receives
 *
 *   If some records were spilled, a rank merges all of its records, once, in order. It
 *     sends to        0, 1, ..., n - 1
 *     receives from   0, 1, ..., n - 1 |                         r also sends its own records to itself
 *
 * Streams to the left of the bar are one input, and streams to the right of it are another. In each input the ranks are
 * in the order of the original input, so records that tie are, too. Each stream waits only for the stream before it of
 * its sender and for the one before it of its receiver. So there is always a stream that can continue. */
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
    const struct record_shares *shares;     /* if all ranks have their records in memory; else NULL, and ... */
    struct merge_ring *merge;               /* ... the records come from here, with */
    const struct splitters *splitters;
    const struct sort_rule *rule;           /* this and the next make the keys that the splitters are based on */
    const struct minhash *minhash;          /* minimisers of -M; else NULL */
    bool keys_decide;                       /* records of equal keys tie */
};

struct exchange_options {
    struct mpi_team team;
    int n_threads;
    const struct latch *sender;  /* errors of the sort whose records are merged */
    struct latch *latch;         /* errors of the sort that reads from the window */
};

/* NULL: out of memory, and the error is recorded in the latch. */
struct exchange *exchange_open(const struct exchange_options *options);

/* Call it before the first read from the window. */
void exchange_start(struct exchange *exchange, const struct exchange_records *records);

/* Call it when nothing reads from the window any more, and after the team has ended: late tasks still use messages. */
void exchange_close(struct exchange *exchange);

enum exchange_count {
    EXCHANGE_LISTED,             /* for any rank */
    EXCHANGE_SENT, EXCHANGE_RECEIVED,   /* to and from other ranks */
    N_EXCHANGE_COUNTS,
};

/* Returns the number of bytes so far. */
uint64_t exchange_bytes(const struct exchange *exchange, enum exchange_count count);

/* Returns the window with the records for this rank. They are two inputs, so it ends twice. The second end comes when
 * this rank has also sent all of its own records. Only the main thread of the team may ask for more. */
struct byte_window *exchange_window(struct exchange *exchange);

#endif
