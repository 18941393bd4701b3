/* SPDX-License-Identifier: MIT */
/* Tasks sort sublists while the input is read. A sublist is closed every 2^20 records. It is handed to a task when all
 * of its keys are in their places. Only the main thread calls these functions. It sorts sublists itself when it has to
 * wait. */
#ifndef SORT_TASKS_H
#define SORT_TASKS_H

#include <stdatomic.h>
#include "base/task_ring.h"
#include "sort/arenas.h"

struct engine;

struct sort_tasks_options {
    const struct arenas *arenas; /* may be opened later */
    const struct engine *engine;
    const struct minhash *minhash;   /* minimisers of -M; else NULL. The next two fields are for -M, too: */
    bool are_ranked;             /* another sort has turned the reads, and they still have their ranks */
    bool keep_ranks;             /* the reads keep their ranks when they are sorted */
    void (*arena_is_sorted)(void *arg);   /* see sort_tasks_end_arena() */
    void *arg;                   /* argument of arena_is_sorted() */
};

/* A sublist to be sorted. The main thread writes all fields before READY. */
struct sort_task {
    uint64_t due;                /* its keys are in their places when this number of blocks is taken back */
    struct bam_sublist sublist;
    const struct bam_arena *arena;
};

/* The largest number of sublists under way. Fewer sublists than this wait for their keys: a sublist has nine blocks or
 * more, and a source has at most 8192 slots. Chunks are larger blocks, and there are two for each thread. */
enum { SORT_TASKS_MAX = 1024 };

struct sort_tasks {
    struct sort_tasks_options opt;
    struct sort_task tasks[SORT_TASKS_MAX];
    struct task_ring ring;       /* ring of the tasks: a task is handed out when its keys are complete, and is FREE
                                  * again when they are sorted */
    uint64_t n_blocks;           /* taken back; main thread only, like n_closed */
    uint64_t n_closed;           /* sublists */
    _Atomic uint32_t unsorted[2];   /* sublists of each arena that are not sorted, plus one while the arena is being
                                     * filled or is empty; any thread */
    _Atomic uint64_t turned;     /* sum of the changes that -M made to the checksum, modulo 2^64; added by sort tasks */
};

/* -1: out of memory, and the error is recorded in the latch. */
int sort_tasks_open(struct sort_tasks *sorts, const struct sort_tasks_options *options);
void sort_tasks_close(struct sort_tasks *sorts);

/* Call once per block taken back. All keys are in their places when `behind` more blocks are taken back. Closes the
 * open sublist of the filled arena if it is large enough, and hands sublists to tasks when their keys are in their
 * places. to_come: records that are still to be read. When few are left, sublists are smaller, so that no thread sorts
 * a large sublist while all other threads are idle. -1: out of memory, and the error is recorded in the latch. */
int sort_tasks_close_sublist(struct sort_tasks *sorts, uint32_t behind, uint64_t to_come);

/* Call when no block is out and all keys are in their places. Divides all remaining records of the filled arena into as
 * many sublists as there are threads, since the threads have nothing else to do. Closes these sublists and hands them
 * to tasks. -1: out of memory, and the error is recorded in the latch. */
int sort_tasks_close_rest(struct sort_tasks *sorts);

/* Declares that the arena gets no more sublists before it is emptied. When all of its sublists are sorted, the thread
 * that sorted the last one calls arena_is_sorted(). If they are already sorted, this thread calls it. */
void sort_tasks_end_arena(struct sort_tasks *sorts, const struct bam_arena *arena);

/* Sorts a sublist that no thread has claimed. False: there is no such sublist. A task_help_fn. */
bool sort_tasks_help(void *sorts);

/* Call after the last sublist, while no arena is being spilled. Waits, and works, until all sublists are sorted. -1:
 * stop. */
int sort_tasks_finish(struct sort_tasks *sorts);

/* Clears the rank that -M keeps in a record (keep_ranks). Call it after the merge for each record. */
void sort_tasks_finish_record(uint8_t *record);

#endif
