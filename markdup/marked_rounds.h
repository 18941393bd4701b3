/* SPDX-License-Identifier: MIT */
/* Slices enter the sets of duplicates in rounds, and wait until nobody in them can lose any more. A round has a task
 * for each shard of keys; where losses are followed, one for these comes behind. */
#ifndef MARKED_ROUNDS_H
#define MARKED_ROUNDS_H

#include "markdup/dup_chains.h"
#include "markdup/marked_queue.h"

struct dup_counts;
struct latch;
struct marked_rounds;
struct clocks;

struct marked_rounds_options {
    struct dup_chains_opt chains; /* but for settled and context */
    bool follows;                /* losses matter, and not flags alone */
    bool keeps;                  /* nothing is final before all is */
    size_t step;                 /* bytes of what is settled before slices are to go */
    int64_t window;              /* between records, as markdup's -l */
    int n_threads;
    struct dup_counts **counts;  /* of each thread, who alone writes there, by read group */
    void (*entered)(void *arg, struct marked_slice *slice);   /* the shards are done with it; on the main thread */
    void *arg;
    const char *path;            /* of the input, for messages */
    struct latch *latch;
    struct clocks *clocks;
};

/* All that the options point to stays the caller's. NULL: out of memory. */
struct marked_rounds *marked_rounds_open(const struct marked_rounds_options *options);

/* Call it after the parallel region. Frees the slices that wait, too. */
void marked_rounds_close(struct marked_rounds *rounds);

/* Among how many shards marked_slice_key() is to divide the records. */
uint32_t marked_rounds_shards(const struct marked_rounds *rounds);

/* All but marked_rounds_shards() are the main thread's. A failure is in the latch. */

/* Whether a round is on. */
bool marked_rounds_on(const struct marked_rounds *rounds);

/* Begins a round with all slices of the queue, which are keyed and joined, and follow those of the last round. None is
 * on. The slices are the rounds' then. */
void marked_rounds_begin(struct marked_rounds *rounds, struct marked_queue *keyed);

/* No slices follow those that were given. */
void marked_rounds_end(struct marked_rounds *rounds);

/* Goes on with the round, as far as its tasks are done. */
void marked_rounds_go_on(struct marked_rounds *rounds);

/* Bytes of memory that losses took after the last round; `most` if that is more. */
size_t marked_rounds_memory(const struct marked_rounds *rounds, size_t most);

/* Does a little of its work. False: there is none. */
bool marked_rounds_help(struct marked_rounds *rounds);

/* One of the slices that wait, number 0 being the oldest, if it is final; else NULL. */
struct marked_slice *marked_rounds_final(const struct marked_rounds *rounds, size_t number);

/* The oldest slice is the caller's. It is final. */
void marked_rounds_pop(struct marked_rounds *rounds);

/* All slices were given, became final, and were taken. */
bool marked_rounds_done(const struct marked_rounds *rounds);

#endif
