/* SPDX-License-Identifier: MIT */
/* Parts of slots, joined in turn by the tasks that count them: a thread that has counted one joins all that are next.
 *
 *     joined | joined | counted, next | counted | being counted | counted | ..
 *                      ------- one thread -----> stops
 *
 * One thread at a time joins. A thread that finds another at it leaves its part to that one, who looks again when it
 * has stopped; so nobody waits. */
#ifndef JOIN_CHAIN_H
#define JOIN_CHAIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct counts;

/* A state has a cache line of its own. */
struct chain_slot {
    _Alignas(64) atomic_bool counted;    /* set by who counted it, cleared by who joins it */
};

struct join_chain {
    struct counts *counts;
    struct chain_slot *slots;    /* n_slots, used in turn */
    uint32_t n_slots;
    _Alignas(64) atomic_bool taken;      /* a thread joins */
    _Atomic uint64_t joined;     /* so many are; written by the thread that joins */
};

/* -1: out of memory. A chain of zeros may be closed. */
int join_chain_open(struct join_chain *chain, struct counts *counts, uint32_t n_slots);
void join_chain_close(struct join_chain *chain);

/* The slot is counted. Joins what is next. By any thread; after an error, which is recorded in the latch, it does
 * nothing. The slot may be counted anew when join_chain_has() says so. */
void join_chain_add(struct join_chain *chain, uint32_t slot);

/* Whether so many are joined. */
static inline bool join_chain_has(const struct join_chain *chain, uint64_t n)
{
    return atomic_load_explicit(&chain->joined, memory_order_acquire) >= n;
}

#endif
