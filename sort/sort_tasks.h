/* SPDX-License-Identifier: MIT */
/* The memory for records: two arenas, one of which is filled while the other, when
 * not all fits, leaves memory as a sorted run.
 *
 *   filled: | A         | B         | A         | B      |   then merged with the runs
 *   leaves:             | A         | B         | A      |   (B stays, and so does A if both are all)
 *
 * Nothing leaves before it must: when it is known that not all will fit, or when
 * both are nearly full. Sublists are sorted, in tasks, as they are closed.
 * All functions are the master's, who works while it waits. */
#ifndef ARENA_PAIR_H
#define ARENA_PAIR_H

#include "bam_arena.h"
#include "base/memory_shares.h"
#include "base/task_ring.h"

struct latch;
struct merge_ring;
struct minhash;
struct record_sink;
struct run_reader;
struct spill;
struct spill_store;
struct stats;

struct arena_pair_options {
    struct memory_plan plan;
    const char *const *temp_prefixes;   /* see spill_store.h */
    size_t n_temp_prefixes;
    uint64_t at_least;           /* bytes that will surely come; 0: nobody knows */
    double (*expected)(void *arg);   /* bytes to be expected in all; 0: nobody knows */
    void *arg;
    int n_threads;
    struct latch *latch;
    struct stats *stats;         /* may be NULL */
};

/* A sublist to be sorted: by a task, or by the master when it has to wait. */
struct sorting {
    uint64_t due;                /* its keys are in their places when so many blocks are taken back; master */
    struct bam_sublist sublist;  /* master, before READY */
    const struct bam_arena *arena;
};

/* Under way at most. Few of them wait for their keys: a sublist has 500 blocks or
 * more, a source at most 8192 slots. */
enum { SORTINGS = 64 };

struct arena_pair {
    struct arena_pair_options opt;
    struct bam_arena arenas[2];
    struct bam_arena *arena;     /* the one that is filled; master */
    struct sorting sortings[SORTINGS];
    struct task_ring sorts;      /* of them: handed out when they have their keys, FREE again when they are sorted */
    uint64_t n_blocks;           /* taken back; master, as the next */
    uint64_t n_sortings;         /* sublists closed */
    _Atomic uint32_t unsorted[2];   /* sublists of each not sorted yet, and one more while it is filled; any thread */
    struct minhash *minhash;     /* of -M; else NULL; the caller's */
    _Atomic uint64_t turned;     /* what minhash_run() says of checksums, summed; sort tasks */
    bool placed;                 /* of -M: a record with a reference has left memory */
    struct spill_store *store;
    struct spill *spill;
    bool spilling;               /* it is known that not all fits into memory ... */
    struct memory_spilling beside;   /* ... and then: how the arenas' memory is divided */
    struct run_reader *reader;   /* NULL: everything is in memory */
    struct merge_ring *ring;     /* of the last merge */
};

/* Reserves the arenas, and opens what spilling needs as far as that can fail. -1: told to the latch. */
int arena_pair_open(struct arena_pair *pair, const struct arena_pair_options *options);
void arena_pair_close(struct arena_pair *pair);

/* What the arenas are to know of the records: their references, the order; minhash
 * is NULL but for -M. */
void arena_pair_set_order(struct arena_pair *pair, int32_t n_ref, const struct sort_rule *rule,
                          struct minhash *minhash);

/* Bytes that all records would take, keys included; 0: nobody knows. And those that are taken now. */
double arena_pair_expected(const struct arena_pair *pair);
uint64_t arena_pair_taken(const struct arena_pair *pair);

/* One more block was taken back, its keys to be put in their places by the time as many
 * blocks more have been as the source has slots. Closes the open sublist if it is large
 * enough; sorts it in a task, when all of its keys are there. -1: told to the latch. */
int arena_pair_sort(struct arena_pair *pair);

/* Lets the older arena leave before it is too late for the reader of a pipe not to
 * wait. -1: told to the latch. */
int arena_pair_hurry(struct arena_pair *pair);

/* The arena is full, all its blocks are taken back and all keys in their places: makes another one pair->arena,
 * or this one larger, for `room` bytes more. -1: told to the latch. */
int arena_pair_make_room(struct arena_pair *pair, size_t room);

/* After the last record, all keys being in their places: waits until all is sorted, and what must leave has left. -1: told to the latch. */
int arena_pair_finish(struct arena_pair *pair);

/* After that. Whether no record has a reference (of -M). */
bool arena_pair_unplaced(const struct arena_pair *pair);

/* After that: merges everything into the sink. Slices come back as the sink passes
 * those before. -1: told to the latch. */
int arena_pair_merge(struct arena_pair *pair, struct record_sink *sink);

#endif
