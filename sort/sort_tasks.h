/* SPDX-License-Identifier: MIT */
/* Sublists are sorted by tasks while reading goes on. A sublist is closed every 2^20 records. It is handed to a task
 * when all of its keys are in their places. Only the main thread calls these functions; it sorts, too, when it has
 * to wait. */
#ifndef SORT_TASKS_H
#define SORT_TASKS_H

#include <stdatomic.h>
#include "base/task_ring.h"
#include "sort/arenas.h"

struct sort_tasks_options {
    const struct arenas *arenas; /* may be opened later */
    int n_threads;
    const struct minhash *minhash;   /* of -M; else NULL. The next two are of -M, too: */
    bool are_ranked;             /* another sort has turned the reads, which keep their ranks */
    bool keep_ranks;             /* the reads keep their ranks when they are sorted */
    void (*arena_is_sorted)(void *arg);   /* see sort_tasks_end_arena() */
    void *arg;                   /* of arena_is_sorted */
    struct latch *latch;
    struct clocks *clocks;       /* may be NULL */
};

/* A sublist to be sorted. The main thread writes all fields before READY. */
struct sort_task {
    uint64_t due;                /* its keys are in their places when so many blocks are taken back */
    struct bam_sublist sublist;
    const struct bam_arena *arena;
};

/* Sublists under way at most. Those that wait for their keys are fewer: a sublist has nine blocks or more, a source
 * at most 8192 slots; of chunks, which are larger blocks, each thread has two. */
enum { SORT_TASKS_MAX = 1024 };

struct sort_tasks {
    struct sort_tasks_options opt;
    struct sort_task tasks[SORT_TASKS_MAX];
    struct task_ring ring;       /* of the tasks: handed out when their keys are there, FREE again when sorted */
    uint64_t n_blocks;           /* taken back; main thread, as the next */
    uint64_t n_closed;           /* sublists */
    _Atomic uint32_t unsorted[2];   /* sublists of each arena that are not sorted, and one more while it is filled or
                                     * empty; any thread */
    _Atomic uint64_t turned;     /* by how much -M changed the checksum, modulo 2^64; sort tasks */
};

/* -1: out of memory, and the error is recorded in the latch. */
int sort_tasks_open(struct sort_tasks *sorts, const struct sort_tasks_options *options);
void sort_tasks_close(struct sort_tasks *sorts);

/* Call once per block taken back. All keys are in their places when `behind` more are. Closes the open sublist of the
 * filled arena if it is large enough, and hands sublists to tasks when their keys are in their places. to_come: records
 * that are still to be read. When they are few, sublists are smaller, so that no thread sorts a large one when all
 * others have nothing left to do. -1: out of memory, and the error is recorded in the latch. */
int sort_tasks_close_sublist(struct sort_tasks *sorts, uint32_t behind, uint64_t to_come);

/* Call when no block is out and all keys are in their places. Closes all that is left of the filled arena, in as many
 * sublists as there are threads, since these have nothing else to do, and hands them to tasks. -1: out of memory, and
 * the error is recorded in the latch. */
int sort_tasks_close_rest(struct sort_tasks *sorts);

/* The arena gets no more sublists before it is emptied. When all of its sublists are sorted, the thread that sorted
 * the last one (or this one, if they are) calls arena_is_sorted(). */
void sort_tasks_end_arena(struct sort_tasks *sorts, const struct bam_arena *arena);

/* Sorts a sublist that no thread has claimed. False: there is none. A task_help_fn. */
bool sort_tasks_help(void *sorts);

/* Call after the last sublist, while no arena is on its way out. Waits, and works, until all are sorted. -1: stop. */
int sort_tasks_finish(struct sort_tasks *sorts);

/* Clears the rank that -M keeps in a record (keep_ranks). Call it after the merge for each record. */
void sort_tasks_finish_record(uint8_t *record);

#endif
