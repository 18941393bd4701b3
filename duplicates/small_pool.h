/* SPDX-License-Identifier: MIT */
/* Memory for small things that come and go, as read names do. What is given back leaves room for the next thing of its
 * size, in steps of 16 bytes. Serial. */
#ifndef SMALL_POOL_H
#define SMALL_POOL_H

#include <stddef.h>

enum { SMALL_POOL_STEP = 16, SMALL_POOL_SIZES = 32, SMALL_POOL_MAX = SMALL_POOL_STEP * SMALL_POOL_SIZES };

/* One of all zeros is empty. */
struct small_pool {
    void *slabs;                 /* each begins with a pointer to the one before */
    char *room;                  /* of the last slab: what is free */
    size_t n_room;
    void *spare[SMALL_POOL_SIZES];   /* by size; each begins with a pointer to the next */
};

/* Gives n bytes, 1 to SMALL_POOL_MAX, aligned for any type. NULL: no memory. */
void *small_pool_take(struct small_pool *pool, size_t n);
/* Takes them back; n as before. NULL is nothing. */
void small_pool_give(struct small_pool *pool, void *bytes, size_t n);
void small_pool_free(struct small_pool *pool);

#endif
