/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdlib.h>
#include "duplicates/small_pool.h"

/* So large that the system is asked seldom. */
enum { SLAB = 1 << 16 };

static size_t size_of(size_t n)
{
    return (n + SMALL_POOL_STEP - 1) / SMALL_POOL_STEP;
}

void *small_pool_take(struct small_pool *pool, size_t n)
{
    assert(n > 0 && n <= SMALL_POOL_MAX);
    size_t size = size_of(n), bytes = size * SMALL_POOL_STEP;
    void **spare = pool->spare[size - 1];
    if (spare) {
        pool->spare[size - 1] = *spare;
        return spare;
    }
    if (bytes > pool->n_room) {
        void **slab = malloc(SLAB);
        if (!slab)
            return NULL;
        *slab = pool->slabs;
        pool->slabs = slab;
        pool->room = (char *)slab + SMALL_POOL_STEP;
        pool->n_room = SLAB - SMALL_POOL_STEP;
    }
    void *taken = pool->room;
    pool->room += bytes;
    pool->n_room -= bytes;
    return taken;
}

void small_pool_give(struct small_pool *pool, void *bytes, size_t n)
{
    if (!bytes)
        return;
    void **spare = bytes;
    *spare = pool->spare[size_of(n) - 1];
    pool->spare[size_of(n) - 1] = spare;
}

void small_pool_free(struct small_pool *pool)
{
    for (void **slab = pool->slabs, **next; slab; slab = next) {
        next = *slab;
        free(slab);
    }
    *pool = (struct small_pool){.slabs = NULL};
}
