/* SPDX-License-Identifier: MIT */
/* Arenas leave memory as sorted runs, by tasks, while reading goes on; and runs
 * that are too many are merged into fewer in the background.
 *
 * An arena is cut into ranges of keys, more than there are threads. A task
 * merges its range of all sublists and writes it, slice by slice; the ranges'
 * slices in order are the run. Where in the file a slice lies does not matter,
 * so no task waits for another, and nothing is done by one thread alone. */
#ifndef SPILL_H
#define SPILL_H

#include "bam_arena.h"
#include "spill/spill_run.h"

struct latch;
struct spill;
struct stats;

struct spill_options {
    struct spill_store *store;   /* stays the caller's */
    size_t merge_memory;         /* for merging in the background */
    int n_threads;
    struct latch *latch;
    struct stats *stats;         /* may be NULL */
};

/* NULL: no memory, told to the latch. */
struct spill *spill_open(const struct spill_options *options);
void spill_close(struct spill *spill);

/* Before the first arena: the bytes of slices in memory, a multiple of 16, and
 * how many runs of such slices the last merge can take. */
void spill_set_sizes(struct spill *spill, size_t slice_size, size_t fan_in);

/* The master says that this arena, all sublists closed, is to leave. -1: told to the latch. */
int spill_begin(struct spill *spill, const struct bam_arena *arena);

/* The arena of spill_begin() is sorted: tasks begin to write it. Once, any thread. */
void spill_arena_is_sorted(struct spill *spill);

/* The arena on its way, NULL if none. */
const struct bam_arena *spill_arena(const struct spill *spill);

/* Whether all of the arena is written, or something failed. */
bool spill_is_done(const struct spill *spill);

/* The master writes a range that nobody has begun; 0: there is none. */
int spill_help(struct spill *spill);

/* Once it is done: lists the run; from then on the arena may be emptied. May begin
 * to merge runs in the background. -1: told to the latch. */
int spill_end(struct spill *spill);

/* After the last arena: merges runs until two slices of each fit into the
 * memory, at a multiple of 16, with the tasks' help. *slice_size: of the largest
 * slice, unless that is huge. -1: told to the latch. */
int spill_settle(struct spill *spill, uint8_t *memory, size_t size, size_t *slice_size);

/* The runs, in input order; they stay the spill's. */
const struct spill_run *spill_runs(const struct spill *spill, size_t *n);

#endif
