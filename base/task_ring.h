/* SPDX-License-Identifier: MIT */
/* Work of the team: slots that the main thread hands out. Tasks run them, and so does the main thread while it waits.
 *
 *   FREE --hand out--> READY --claim--> TAKEN --run--> DONE --release--> FREE
 *    ^                                    |
 *    +---- released by its runner --------+   (task_ring_options.run_releases)
 *
 * Each state change has one writer and publishes something:
 *
 *   hand out   the main thread stores READY with release, after the slot's inputs are written. Slots out of turn
 *              (task_ring_submit) may be handed out by another thread, one at a time
 *   claim      any thread, by compare-and-swap from READY to TAKEN with acquire: it alone runs the slot, and sees the
 *              inputs
 *   run        the claimer stores DONE with release, after the outputs are written
 *   release    the owner of the outputs, who has read DONE with acquire, stores FREE with release: the next hand-out
 *              of the slot may write its inputs
 *
 * doc/design.md explains why rings cannot block each other. A task that runs very late may find its slot handed out
 * again; then it runs the new work.
 *
 * The work that the main thread does while it waits, in this order:
 *
 *   it waits for                          it runs
 *   an inflated block, text of SAM        blocks to inflate; for SAM also chunks to parse
 *   the records of a chunk                chunks, then blocks to inflate; with many threads blocks first,
 *                                         then only this chunk (chunk_reader_help())
 *   a piece of the input                  that piece, then blocks to inflate
 *   room for a sublist                    the sort that has its slot
 *   an arena that leaves                  ranges of the spill, then sorts
 *   a merged range                        that range, blocks to deflate, slices to load, further ranges
 *   a place in the sink, its end          blocks to deflate
 *
 * Only short work is done while it waits for a block: a sort takes 50 ms, and all other threads would run out of
 * work. */
#ifndef TASK_RING_H
#define TASK_RING_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct latch;
struct clocks;

enum task_state { TASK_FREE, TASK_READY, TASK_TAKEN, TASK_DONE };

/* Does the work of a slot, on any thread. */
typedef void task_run_fn(void *arg, uint32_t slot);

struct task_ring_options {
    uint32_t n_slots;
    int n_threads;               /* threads of the team: a batch leaves every thread some tasks; 0: no batches */
    bool large_batches;          /* while threads lack work, one task gets several batches and shares them */
    task_run_fn *run;
    void *arg;                   /* argument of run() */
    bool run_releases;           /* run(), or the function it passes the slot to, releases it; no slot is ever DONE */
};

/* A state has its own cache line, because neighbouring slots change owner at other times. */
struct task_slot {
    _Alignas(64) _Atomic int state;
};

struct task_batches;

/* Slots are used in turn: slot number n is slot n modulo n_slots. All fields belong to the main thread, except the
 * slots and `begun`. */
struct task_ring {
    struct task_ring_options opt;
    struct task_slot *slots;
    uint32_t batch;              /* slots that share a task */
    uint32_t large;              /* slots of a task that shares them; a multiple of batch */
    uint32_t kept;               /* slots of such a task that a thread keeps for itself */
    uint64_t head;               /* slots handed out */
    uint64_t tail;               /* slots that were taken back */
    uint64_t tasked;             /* slots that have a task; slots from here to head wait for one */
    uint64_t help;               /* no slot before this one is READY */
    struct task_batches *batches; /* gets the parts that become tasks; NULL: each task is made at once */
    char apart[64];              /* keeps the next field off the cache lines before it */
    _Atomic uint64_t begun;      /* slots that tasks have begun, in turn; any thread */
};

/* -1: out of memory. A zero-initialised ring may be closed. */
int task_ring_open(struct task_ring *ring, const struct task_ring_options *options);

/* Call it after the parallel region, because late tasks still read the slots. all_free asserts that all slots are
 * FREE. */
void task_ring_close(struct task_ring *ring, bool all_free);

/* Bytes of memory for n_slots slots. */
size_t task_ring_memory(uint32_t n_slots);

/* ---- one slot ---- */

static inline enum task_state task_ring_state(const struct task_ring *ring, uint32_t slot)
{
    return (enum task_state)atomic_load_explicit(&ring->slots[slot].state, memory_order_acquire);
}

/* Gives a READY slot to the caller, which runs it itself. False: another thread has it. */
static inline bool task_ring_claim(struct task_ring *ring, uint32_t slot)
{
    int ready = TASK_READY;
    return atomic_compare_exchange_strong_explicit(&ring->slots[slot].state, &ready, TASK_TAKEN, memory_order_acquire,
                                                   memory_order_relaxed);
}

/* Marks the caller's slot as DONE. */
static inline void task_ring_finish(struct task_ring *ring, uint32_t slot)
{
    atomic_store_explicit(&ring->slots[slot].state, TASK_DONE, memory_order_release);
}

/* Frees a slot whose outputs are no longer needed. */
static inline void task_ring_release(struct task_ring *ring, uint32_t slot)
{
    atomic_store_explicit(&ring->slots[slot].state, TASK_FREE, memory_order_release);
}

/* Claims a slot and runs it. False: it is not READY. */
bool task_ring_run(struct task_ring *ring, uint32_t slot);

/* Hands out a slot, FREE or DONE, with its own task, in any order. Touches only the slot. */
void task_ring_submit(struct task_ring *ring, uint32_t slot);

/* Slots made READY out of turn that have no task yet: they will share one. A zero-initialised batch is empty. */
enum { TASK_BATCH_MOST = 4 };

struct task_batch {
    uint32_t n, slots[TASK_BATCH_MOST];
};

/* Makes a FREE or DONE slot READY, in any order, and a task as soon as the batch is full. */
void task_ring_add(struct task_ring *ring, struct task_batch *batch, uint32_t slot);

/* Makes one task of the slots in the batch, if there are any, and empties it. */
void task_ring_submit_batch(struct task_ring *ring, struct task_batch *batch);

/* ---- slots in turn ---- */

static inline uint32_t task_ring_slot(const struct task_ring *ring, uint64_t number)
{
    return (uint32_t)(number % ring->opt.n_slots);
}

static inline uint64_t task_ring_head(const struct task_ring *ring)
{
    return ring->head;
}

/* The slot that is handed out next. */
static inline uint32_t task_ring_next(const struct task_ring *ring)
{
    return task_ring_slot(ring, ring->head);
}

/* The oldest slot that was not taken back. */
static inline uint32_t task_ring_oldest(const struct task_ring *ring)
{
    return task_ring_slot(ring, ring->tail);
}

static inline bool task_ring_empty(const struct task_ring *ring)
{
    return ring->tail == task_ring_head(ring);
}

static inline bool task_ring_full(const struct task_ring *ring)
{
    return task_ring_head(ring) - ring->tail == ring->opt.n_slots;
}

/* Makes the next slot READY. It has no task yet. */
void task_ring_make_ready(struct task_ring *ring);

/* Makes one task of all READY slots that have none. */
void task_ring_make_task(struct task_ring *ring);

/* Makes the next slot READY, and a task as soon as a batch is full, or a large batch if threads lack work. */
void task_ring_hand_out(struct task_ring *ring);

/* Hands out all remaining slots. */
void task_ring_hand_out_all(struct task_ring *ring);

/* Takes the oldest slot back and releases it. */
void task_ring_take(struct task_ring *ring);

/* Runs the oldest READY slot. False: there is none. */
bool task_ring_help(struct task_ring *ring);

/* ---- many rings ---- */

/* Tasks of several rings that the main thread makes as one. A zero-initialised struct is empty. */
enum { TASK_BATCHES_MOST = 16 };

struct task_batches {
    uint32_t n;
    struct task_part {
        struct task_ring *ring;
        uint64_t n;              /* slots of it */
    } parts[TASK_BATCHES_MOST];
};

/* From now on only the main thread hands out slots of the ring, and their tasks become parts of `batches`. One task is
 * made of `batches` when it is full. Submit `batches` before you wait. */
static inline void task_ring_use_batches(struct task_ring *ring, struct task_batches *batches)
{
    ring->batches = batches;
}

/* Makes one task of all its parts, if there are any, and empties it. NULL: does nothing. */
void task_batches_submit(struct task_batches *batches);

/* ---- waiting ---- */

/* Returns whether the wait is over. */
typedef bool task_until_fn(void *arg);

/* Does a little work; false: there is none. */
typedef bool task_help_fn(void *arg);

/* A task_help_fn for waits in which there is no work to do. */
static inline bool task_no_help(void *arg)
{
    (void)arg;
    return false;
}

/* Works, and naps if there is no work, until `until` returns true. Counts as waiting, except for the work. */
void task_wait(task_until_fn *until, task_help_fn *help, void *arg, struct clocks *clocks);

/* Works at the ring until the slot is in this state, or until the latch (may be NULL) has tripped. First gives all
 * READY slots tasks. */
void task_ring_wait(struct task_ring *ring, uint32_t slot, enum task_state state, const struct latch *latch,
                    struct clocks *clocks);

/* Takes all slots back, each when it is DONE. */
void task_ring_take_all(struct task_ring *ring, struct clocks *clocks);

/* Waits a little for another thread, which has a core or wants this one. *spins counts pauses since the last work. */
void task_pause(unsigned *spins);

/* ---- the team ---- */

/* Runs main_thread(arg) on the calling thread with a team of n_threads threads. The only parallel region. */
void task_team(int n_threads, void (*main_thread)(void *), void *arg);

/* Returns whether there is a team, so that other threads run tasks. */
bool task_in_team(void);

/* The number of the calling thread, from 0. */
int task_thread(void);

#endif
