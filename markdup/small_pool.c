/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "markdup/small_pool.h"

enum { SLAB = 1 << SMALL_POOL_SLAB_BITS, SLABS_MOST = 1 << (32 - SMALL_POOL_SLAB_BITS), SLABS_LEAST = 16 };

static uint32_t steps_of(size_t n)
{
    return (uint32_t)((n + SMALL_POOL_STEP - 1) / SMALL_POOL_STEP);
}

/* The first step of a slab is left unused, so that no handle is 0. */
static int add_slab(struct small_pool *pool)
{
    if (pool->n_slabs == pool->max_slabs) {
        uint32_t max = pool->max_slabs ? 2 * pool->max_slabs : SLABS_LEAST;
        struct small_step **slabs = max <= SLABS_MOST ? realloc(pool->slabs, max * sizeof(struct small_step *)) : NULL;
        if (!slabs)
            return -1;
        pool->slabs = slabs;
        pool->max_slabs = max;
    }
    struct small_step *slab = malloc(SLAB * sizeof *slab);
    if (!slab)
        return -1;
    pool->slabs[pool->n_slabs] = slab;
    pool->room = (pool->n_slabs++ << SMALL_POOL_SLAB_BITS) + 1;
    pool->n_room = SLAB - 1;
    return 0;
}

uint32_t small_pool_take(struct small_pool *pool, size_t n)
{
    assert(n > 0 && n <= SMALL_POOL_MAX);
    uint32_t steps = steps_of(n), taken = pool->spare[steps - 1];
    if (!taken && steps > pool->n_room && add_slab(pool) < 0)
        return 0;
    assert(taken || (pool->room - 1) % SLAB + 1 + pool->n_room == SLAB);
    pool->taken += steps * sizeof(struct small_step);
    if (taken) {
        memcpy(&pool->spare[steps - 1], small_pool_at(pool, taken), sizeof taken);
        return taken;
    }
    taken = pool->room;
    pool->room += steps;
    pool->n_room -= steps;
    return taken;
}

void small_pool_give(struct small_pool *pool, uint32_t handle, size_t n)
{
    if (!handle)
        return;
    uint32_t *spare = &pool->spare[steps_of(n) - 1];
    pool->taken -= steps_of(n) * sizeof(struct small_step);
    memcpy(small_pool_at(pool, handle), spare, sizeof *spare);
    *spare = handle;
}

void small_pool_free(struct small_pool *pool)
{
    for (uint32_t i = 0; i < pool->n_slabs; i++)
        free(pool->slabs[i]);
    free(pool->slabs);
    *pool = (struct small_pool){.slabs = NULL};
}
