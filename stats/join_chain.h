/* SPDX-License-Identifier: MIT */
/* Joins the parts of slots in order. The tasks that count them do it: a thread that has counted a part joins all parts
 * that are next.
 *
 *     joined | joined | counted, next | counted | being counted | counted | ..
 *                      ------- one thread -----> stops
 *
 * One thread at a time joins. A thread that finds another one joining leaves its part to it: that thread looks again
 * after it has stopped. So no thread waits. */
#ifndef JOIN_CHAIN_H
#define JOIN_CHAIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct counts;

/* Each slot has a cache line of its own. */
struct chain_slot {
    _Alignas(64) atomic_bool counted;    /* set by the thread that counted the part, cleared by the one that joins it */
};

struct join_chain {
    struct counts *counts;
    struct chain_slot *slots;    /* n_slots, used in turn */
    uint32_t n_slots;
    _Alignas(64) atomic_bool taken;      /* a thread is joining */
    _Atomic uint64_t joined;     /* the number of joined parts; written by the thread that joins */
};

/* Returns -1 if out of memory. A zero-initialised chain may be closed. */
int join_chain_open(struct join_chain *chain, struct counts *counts, uint32_t n_slots);
void join_chain_close(struct join_chain *chain);

/* Call it when the slot is counted, on any thread. Joins the parts that are next. After an error, which is recorded in
 * the latch, it does nothing. The slot may be used again once join_chain_has() is true for its part. */
void join_chain_add(struct join_chain *chain, uint32_t slot);

/* True if at least n parts are joined. */
static inline bool join_chain_has(const struct join_chain *chain, uint64_t n)
{
    return atomic_load_explicit(&chain->joined, memory_order_acquire) >= n;
}

#endif
