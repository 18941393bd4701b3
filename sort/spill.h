/* SPDX-License-Identifier: MIT */
/* While the input is read, arenas are spilled as sorted runs. Each task merges one range of all sublists and writes it,
 * slice by slice. A run is the list of the slices of all ranges. Adjacent runs are merged in the background when there
 * are too many of them. No task waits for another. */
#ifndef SPILL_H
#define SPILL_H

#include "bam_arena.h"
#include "sort/spill_run.h"

struct engine;

struct spill_options {
    struct spill_store *store;   /* the caller's */
    size_t merge_memory;         /* bytes for merging in the background */
    const struct engine *engine;
};

/* NULL: out of memory, and the error is recorded in the latch. */
struct spill *spill_open(const struct spill_options *options);
void spill_close(struct spill *spill);

/* Returns the bytes that writing and loading slices of this size takes, besides merge_memory: each thread has a packer,
 * whose streams may hold a record as large as a slice, and a loader. */
size_t spill_memory(int n_threads, size_t slice_size);

/* Call before the first arena. slice_size: bytes in memory of a slice, a multiple of 16. fan_in: how
 * many runs of such slices the last merge can take. */
void spill_set_sizes(struct spill *spill, size_t slice_size, size_t fan_in);

/* Main thread: begins to spill this arena. All its sublists are closed. -1: failed, and the error is recorded in the
 * latch. */
int spill_begin(struct spill *spill, const struct bam_arena *arena);

/* The arena of spill_begin() is sorted, so tasks begin to write it. Call once, from any thread. */
void spill_arena_is_sorted(struct spill *spill);

/* The arena that is being spilled; NULL: none. */
const struct bam_arena *spill_arena(const struct spill *spill);

/* Main thread: returns whether the complete arena is written, or something failed. */
bool spill_is_done(struct spill *spill);

/* Main thread: writes a range that no thread has claimed. 0: there is no such range. */
int spill_help(struct spill *spill);

/* Call it when spill_is_done() is true. Lists the run; afterwards the arena may be emptied. May begin
 * to merge runs in the background. -1: failed, and the error is recorded in the latch. */
int spill_end(struct spill *spill);

/* Call it after the last arena. Tasks help to merge runs until two slices of each run fit into memory[size], which is
 * aligned to 16 bytes. *slice_size becomes the size of the largest slice, or the planned size if the largest takes more
 * than a quarter of the memory. -1: failed, and the error is recorded in the latch. */
int spill_settle(struct spill *spill, uint8_t *memory, size_t size, size_t *slice_size);

/* Returns whether records of equal keys are compared, among the records that were spilled so far. */
bool spill_compares(const struct spill *spill);

/* The runs, in input order; they stay the spill's. */
const struct spill_run *spill_runs(const struct spill *spill, size_t *n);

#endif
