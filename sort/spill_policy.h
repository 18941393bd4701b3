/* SPDX-License-Identifier: MIT */
/* Decides when an arena leaves memory as a run, and how memory is divided then. An arena leaves only when it must: when
 * it is known that not all records will fit, or when both arenas are nearly full. Only the main thread calls these
 * functions, except for spill_policy_arena_is_sorted(). */
#ifndef SPILL_POLICY_H
#define SPILL_POLICY_H

#include "base/task_ring.h"
#include "sort/merge_ring.h"
#include "sort/spill.h"

struct record_sink;

struct spill_policy_options {
    struct spill_store_options store;
    size_t merge_memory;         /* see struct spill_options */
    uint64_t at_least;           /* bytes of records that will certainly come; 0: unknown */
    size_t arena_size, slice_size;   /* as planned, see struct memory_plan; arena_size: of each */
    task_help_fn *help;          /* the main thread may call it while an arena leaves, in addition to writing the
                                  * arena */
    void *arg;                   /* argument of help() */
};

/* How the arenas' memory is divided once it is known that not all records will fit. */
struct spill_sizes {
    size_t store;                /* bytes for packed runs; the rest of the runs goes to disk */
    size_t arena_size;           /* size of each arena, in addition to the store */
    size_t slice_size;           /* size of slices of the runs: small enough that all runs can be merged at once, unless
                                  * that size is too small */
    size_t fan_in;               /* runs that the last merge can take */
};

struct spill_policy {
    struct spill_policy_options opt;
    struct spill_store *store;
    struct spill *spill;
    struct run_reader *reader;   /* NULL: there are no runs, or they have not been read back yet */
    bool fits;                   /* set by the owner: it is known that all records fit */
    bool spilling;               /* it is known that not all records fit into memory ... */
    struct spill_sizes sizes;    /* ... and then these sizes apply */
};

/* The facts that the driver knows at each call. All sizes are in bytes. */
struct spill_outlook {
    double records;              /* estimated size of all records; 0: unknown */
    double with_keys;            /* estimated size of all records with their keys; 0: unknown */
    size_t arena_size;           /* size of the arena that is being filled */
    size_t arena_free;           /* the part of arena_size that is not taken yet */
    bool other_is_empty;         /* the other arena holds no records */
};

/* Opens everything that spilling needs and that can fail. If spilling is certain, an unusable place for temporary files
 * is an error now. -1: the error is recorded in the latch. */
int spill_policy_open(struct spill_policy *policy, const struct spill_policy_options *options);

/* Call both functions when all tasks are done, in any order, from any threads. The second one closes the temporary
 * files. */
void spill_policy_close(struct spill_policy *policy);
void spill_policy_close_store(struct spill_policy *policy);

/* Call it for each block while both arenas hold records and no arena is spilled. 1: the older arena should leave now,
 * before the younger one is full, so that the reader of a pipe need not wait; 0: not yet; -1: the error is recorded in
 * the latch. */
int spill_policy_hurry(struct spill_policy *policy, const struct spill_outlook *outlook);

/* Call it when the filled arena is full. Sets policy->spilling if arenas must leave from now on. -1: the error is
 * recorded in the latch. */
int spill_policy_decide(struct spill_policy *policy, const struct spill_outlook *outlook);

/* Calls spill_arena_is_sorted(). Call it once for each arena that leaves, from any thread. */
void spill_policy_arena_is_sorted(void *policy);

/* Waits, and works, until the arena that is leaving is a run, so that it may be emptied. -1: stop. */
int spill_policy_await(struct spill_policy *policy);

/* Call it after the last arena has left. Brings the runs back into memory[size], which is at a multiple of 16. Slices
 * are loaded ahead of the merge, into memory that the sink has passed. again: the runs stay, for another call. *runs
 * receives what the merge must know. -1: the error is recorded in the latch. */
int spill_policy_read_back(struct spill_policy *policy, uint8_t *memory, size_t size, struct record_sink *sink,
                           bool again, struct merge_runs *runs);

/* Returns whether all records fit into both arenas, according to with_keys and arena_size alone. 1: yes; 0: no; -1:
 * unknown. */
int spill_policy_will_fit(const struct spill_outlook *outlook);

/* arena_size and slice_size: as planned. expected: bytes of all records, 0 if unknown. late: both arenas are already
 * full, so there is no memory for a store. */
struct spill_sizes spill_policy_sizes(size_t arena_size, size_t slice_size, double expected, bool late);

#endif
