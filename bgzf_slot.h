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

/* Waits a little for another thread, which holds a core or wants this one. */
static inline void slot_pause(unsigned *spins)
{
    enum { SPINS_BEFORE_YIELD = 64 };            /* some 2 us: a block takes 20 to 500 */
    if (++*spins < SPINS_BEFORE_YIELD) {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("yield");
#endif
    } else {
        sched_yield();
    }
}

#endif
