/* SPDX-License-Identifier: MIT */
/* Slices enter the sets of duplicates in rounds, and wait until none of their records can lose any more. A round has
 * one task for each shard of keys; if losses are followed, one task for them comes after those. */
#ifndef MARKED_ROUNDS_H
#define MARKED_ROUNDS_H

#include "markdup/dup_chains.h"
#include "markdup/marked_queue.h"

struct dup_counts;
struct engine;
struct marked_rounds;

struct marked_rounds_options {
    struct dup_chains_opt chains; /* without settled and context */
    bool follows;                /* losses are needed, not only flags */
    bool keeps;                  /* no slice is final before all are */
    size_t step;                 /* bytes reported before slices must be taken */
    int64_t window;              /* between records, as markdup's -l */
    const struct engine *engine;
    struct dup_counts **counts;  /* counts of each thread, which alone writes to them, by read group */
    void (*entered)(void *arg, struct marked_slice *slice);   /* main thread: the shards are done with the slice */
    void *arg;
    const char *path;            /* path of the input, for messages */
};

/* The caller owns all objects that the options point to. NULL: out of memory. */
struct marked_rounds *marked_rounds_open(const struct marked_rounds_options *options);

/* Call it after the parallel region. Also frees the waiting slices. */
void marked_rounds_close(struct marked_rounds *rounds);

/* Number of shards for marked_slice_key(). */
uint32_t marked_rounds_shards(const struct marked_rounds *rounds);

/* Only the main thread calls the functions below. A failure is recorded in the latch. */

/* Returns whether a round is running. */
bool marked_rounds_on(const struct marked_rounds *rounds);

/* Begins a round with all slices of the queue, which are keyed and joined, and follow those of the last round. No round
 * may be running. The rounds take ownership of the slices. */
void marked_rounds_begin(struct marked_rounds *rounds, struct marked_queue *keyed);

/* Call it after the last slice was given. */
void marked_rounds_end(struct marked_rounds *rounds);

/* Continues the round, as far as its tasks are done. */
void marked_rounds_go_on(struct marked_rounds *rounds);

/* Bytes of memory of losses after the last round, at most `most`. */
size_t marked_rounds_memory(const struct marked_rounds *rounds, size_t most);

/* Does a little of its work. False: there is none. */
bool marked_rounds_help(struct marked_rounds *rounds);

/* Waiting slice `number` (0 is the oldest) if it is final; otherwise NULL. */
struct marked_slice *marked_rounds_final(const struct marked_rounds *rounds, size_t number);

/* Gives the oldest slice, which is final, to the caller. */
void marked_rounds_pop(struct marked_rounds *rounds);

/* Returns whether all slices were given, became final, and were taken. */
bool marked_rounds_done(const struct marked_rounds *rounds);

#endif
