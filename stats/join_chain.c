/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "stats/counts.h"
#include "stats/join_chain.h"

int join_chain_open(struct join_chain *c, struct counts *counts, uint32_t n_slots)
{
    size_t size = n_slots * sizeof *c->slots;
    c->counts = counts;
    c->n_slots = n_slots;
    c->slots = aligned_alloc(_Alignof(struct chain_slot), size);
    if (!c->slots)
        return -1;
    for (uint32_t i = 0; i < n_slots; i++)
        atomic_init(&c->slots[i].counted, false);
    return 0;
}

void join_chain_close(struct join_chain *c)
{
    free(c->slots);
    c->slots = NULL;
}

static atomic_bool *next(const struct join_chain *c)
{
    return &c->slots[atomic_load_explicit(&c->joined, memory_order_relaxed) % c->n_slots].counted;
}

/* Joins the parts that are next. Called by the thread that has taken the chain. Returns false on an error. */
static bool join_all(struct join_chain *c)
{
    for (atomic_bool *counted; *(counted = next(c));) {
        uint64_t n = atomic_load_explicit(&c->joined, memory_order_relaxed);
        *counted = false;
        if (counts_join(c->counts, (uint32_t)(n % c->n_slots)) < 0)
            return false;
        atomic_store_explicit(&c->joined, n + 1, memory_order_release);
    }
    return true;
}

/* All loads and stores of `counted` and `taken` are sequentially consistent. So either the thread that gives the chain
 * back sees a part that was counted meanwhile, or the thread that counted it sees that the chain is free. */
void join_chain_add(struct join_chain *c, uint32_t slot)
{
    c->slots[slot].counted = true;
    do {
        if (atomic_exchange(&c->taken, true))
            return;
        if (!join_all(c))
            return;                              /* the chain stays taken */
        c->taken = false;
    } while (*next(c));
}
