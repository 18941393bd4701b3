/* SPDX-License-Identifier: MIT */
/* Sorted records on their way to the ranks that write them.
 *
 *   merge of this rank's part --> | for rank 0 | for rank 1 | ... |   sent in this order, 4 messages under way
 *   records for this rank     <-- | of rank 0  | of rank 1  | ... |   taken in this order: that of the input
 *
 * Both go on while somebody asks for more bytes. The stream of s to d waits for those of s to d-1 and of s-1 to d,
 * and for no other: so some stream can always go on. */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include "base/byte_window.h"
#include "mpi/mpi_team.h"
#include "mpi/splitters.h"

struct exchange;
struct merge_ring;
struct minhash;
struct sort_rule;

struct exchange_options {
    struct mpi_team team;
    const struct sort_rule *rule;   /* this and the next make the keys of which the splitters are */
    const struct minhash *minhash;   /* of -M; else NULL */
    const struct splitter *splitters;   /* team.size - 1 */
    bool keys_decide;            /* as in splitters_make() */
    const struct latch *sender;  /* of the merge */
    struct latch *latch;         /* of who reads */
};

/* splitters may be filled later. NULL: no memory, and the error is recorded in the latch. */
struct exchange *exchange_open(const struct exchange_options *options);

/* Call it before anybody reads from the window: merge gives this rank's records. */
void exchange_start(struct exchange *exchange, struct merge_ring *merge);

/* Call it when nobody reads from the window any more. */
void exchange_close(struct exchange *exchange);

enum exchange_count {
    EXCHANGE_MERGED,             /* this rank's records */
    EXCHANGE_SENT, EXCHANGE_RECEIVED,   /* to and from other ranks */
    N_EXCHANGE_COUNTS,
};

/* Bytes so far. */
uint64_t exchange_bytes(const struct exchange *exchange, enum exchange_count count);

/* The records for this rank. Its end comes when this rank has sent all of its own, too. Only the main thread of the
 * team may ask for more. */
struct byte_window *exchange_window(struct exchange *exchange);

#endif
