/* SPDX-License-Identifier: MIT */
/* Joins the parts of slots in order. The tasks that count the parts also join them:
 *
 *     joined so far  <- [4 5 6] |   7    | [8 9] <- 10 | 11
 *                    one thread   being    another      its thread
 *                                 counted  thread       leaves it
 *
 * One thread at a time joins the parts that are next. Another thread that has counted a part meanwhile prepares it with
 * the waiting parts before and after it (counts_pair()), so that the joining thread has less to do. A thread that finds
 * nothing to do leaves its part. The other threads find it, because each of them looks again after each step. So no
 * thread waits for another one, except for a lock that is held for a few instructions. */
#ifndef JOIN_TREE_H
#define JOIN_TREE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/task_ring.h"

struct clocks;
struct counts;
struct latch;

/* Neighbouring slots that wait together are a run. */
struct join_slot {
    uint32_t n;                  /* in the first and the last slot of a run: the number of its slots; else 0 */
    bool is_apart;               /* its part cannot be prepared with the one before it */
};

struct join_tree {
    struct counts *counts;
    struct clocks *clocks;       /* may be NULL */
    uint32_t n_slots;
    pthread_mutex_t lock;        /* for `slots`, and for `joined` when the last part of a run was joined */
    struct join_slot *slots;     /* n_slots, used in turn; NULL: the tree is not open */
    _Atomic uint64_t joined;     /* the number of joined parts; written by the thread that joins */
};

/* Returns -1 if out of memory. A zero-initialised tree may be closed. */
int join_tree_open(struct join_tree *tree, struct counts *counts, uint32_t n_slots, struct clocks *clocks);
void join_tree_close(struct join_tree *tree);

/* Returns the bytes of memory for n_slots slots. */
size_t join_tree_memory(uint32_t n_slots);

/* Leaves the part of a counted slot, which any thread may join from now on. The slot may be used again once
 * join_tree_has() is true for its part. */
void join_tree_put(struct join_tree *tree, uint32_t slot);

/* Joins and prepares parts as long as any of them can be. Each thread must call it after it has left the part of the
 * slot, even if the slot is in use again. After an error, which is recorded in the latch, no more parts are joined. */
void join_tree_work(struct join_tree *tree, uint32_t slot);

static inline void join_tree_add(struct join_tree *tree, uint32_t slot)
{
    join_tree_put(tree, slot);
    join_tree_work(tree, slot);
}

/* Returns true if at least n parts are joined. */
static inline bool join_tree_has(const struct join_tree *tree, uint64_t n)
{
    return atomic_load_explicit(&tree->joined, memory_order_acquire) >= n;
}

/* Waits on the main thread until at least n parts are joined. Threads must have left these parts, or be about to. arg:
 * of help. Returns -1 if the latch has tripped. */
int join_tree_wait(const struct join_tree *tree, uint64_t n, task_help_fn *help, void *arg, const struct latch *latch);

#endif
