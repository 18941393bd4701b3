/* SPDX-License-Identifier: MIT */
/* The state of one slot of a ring, and how it changes hands:
 *
 *   FREE --master--> READY --claim: task or master--> TAKEN --claimer--> DONE --owner--> FREE
 *
 * READY is stored with release after the slot's inputs were written; the claim
 * acquires them. DONE is stored with release after the outputs were written;
 * whoever reads DONE with acquire may use them and free the slot. */
#ifndef BGZF_SLOT_H
#define BGZF_SLOT_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Blocks per task, where the ring has that many for each thread. A task costs the thread that
 * makes it 0.4 to 1.4 us with libgomp, more with more threads, and 4 blocks take 0.2 ms and more
 * (bench/task_cost). */
enum { SLOT_GROUP = 4 };

/* How many of n_slots make a task: as many as leave every thread of the team some. */
static inline uint32_t slot_group(uint32_t n_slots, int n_threads)
{
    enum { TASKS_PER_THREAD = 2 };
    uint32_t most = n_slots / (TASKS_PER_THREAD * (uint32_t)n_threads);
    return most < 1 ? 1 : most < SLOT_GROUP ? most : SLOT_GROUP;
}

enum { SLOT_FREE, SLOT_READY, SLOT_TAKEN, SLOT_DONE };

static inline bool slot_claim(atomic_int *state)
{
    int ready = SLOT_READY;
    return atomic_compare_exchange_strong_explicit(state, &ready, SLOT_TAKEN, memory_order_acquire,
                                                   memory_order_relaxed);
}

static inline void slot_pass(atomic_int *state, int next)
{
    atomic_store_explicit(state, next, memory_order_release);
}

static inline int slot_state(const atomic_int *state)
{
    return atomic_load_explicit(state, memory_order_acquire);
}

/* Waits a little for another thread, which holds a core or wants this one. Who
 * has waited long sleeps, so as to leave the core to other programs: what is slow
 * may be the other end of a pipe. */
static inline void slot_pause(unsigned *spins)
{
    /* Some 2 us of spinning and 200 of giving way (a block takes 20 to 500) before naps
     * that hardly add to what has been waited for. */
    enum { SPINS_BEFORE_YIELD = 64, PAUSES_BEFORE_NAP = 512, NAP_NS = 100000 };
    if (++*spins > PAUSES_BEFORE_NAP) {
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    } else if (*spins > SPINS_BEFORE_YIELD) {
        sched_yield();
    } else {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("yield");
#endif
    }
}

#endif
