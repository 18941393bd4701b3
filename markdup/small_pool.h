/* SPDX-License-Identifier: MIT */
/* Memory for small objects with short lives, such as read names. An object has a handle of 32 bits and never moves. The
 * room of a freed object is used again for one of its size, in steps of 8 bytes. Holds up to 32 GiB. Serial. */
#ifndef SMALL_POOL_H
#define SMALL_POOL_H

#include <stddef.h>
#include <stdint.h>

enum { SMALL_POOL_STEP = 8, SMALL_POOL_SIZES = 64, SMALL_POOL_MAX = SMALL_POOL_STEP * SMALL_POOL_SIZES };
/* Steps of a slab, as a power of two: large enough to keep system calls rare. */
enum { SMALL_POOL_SLAB_BITS = 13 };

/* A zero-initialised struct is empty. A handle is the number of the slab and the number of the step in it. */
struct small_pool {
    struct small_step { _Alignas(SMALL_POOL_STEP) uint8_t bytes[SMALL_POOL_STEP]; } **slabs;
    uint32_t n_slabs, max_slabs;
    uint32_t room, n_room;       /* handle of the first free step of the last slab, and the number of its free steps */
    size_t taken;                /* bytes in use */
    uint32_t spare[SMALL_POOL_SIZES];    /* freed objects by size; each begins with the handle of the next */
};

/* Allocates n bytes, 1 to SMALL_POOL_MAX. Returns their handle; 0: out of memory. */
uint32_t small_pool_take(struct small_pool *pool, size_t n);
/* Frees the bytes; n as in small_pool_take(). Handle 0 is ignored. */
void small_pool_give(struct small_pool *pool, uint32_t handle, size_t n);
void small_pool_free(struct small_pool *pool);

/* The bytes, aligned for any type. */
static inline void *small_pool_at(const struct small_pool *pool, uint32_t handle)
{
    return &pool->slabs[handle >> SMALL_POOL_SLAB_BITS][handle & ((1U << SMALL_POOL_SLAB_BITS) - 1)];
}

/* Bytes allocated from the system. */
static inline size_t small_pool_memory(const struct small_pool *pool)
{
    return ((size_t)pool->n_slabs << SMALL_POOL_SLAB_BITS) * SMALL_POOL_STEP + pool->max_slabs * sizeof(void *);
}

#endif
