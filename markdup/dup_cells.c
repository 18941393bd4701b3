/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "markdup/dup_cells.h"

/* The best cluster of a cell. */
struct cell {
    struct dup_cluster cluster;          /* its name is in the pool ... */
    uint64_t member;
    uint32_t name;               /* ... and has this handle */
    bool is_worse;               /* worse than a close one */
};

enum { SLOTS_LEAST = 1 << 6, SLOTS_KEPT = 1 << 12, LIST_KEPT = 1 << 18, CELLS_LEAST = 64 };

void dup_cells_free(struct dup_cells *c)
{
    free(c->list.p);
    free(c->slots);
    small_pool_free(&c->names);
    *c = (struct dup_cells){.round = c->round, .more_rounds = c->more_rounds, .most = c->most};
}

static struct cell *cells_of(const struct dup_cells *c)
{
    return (struct cell *)(void *)c->list.p;
}

static size_t count(const struct dup_cells *c)
{
    return c->list.n / sizeof(struct cell);
}

/* Returns whether the round has too many cells. A few are always allowed. */
static bool is_full(const struct dup_cells *c)
{
    enum { SLOTS_PER_CELL = 4 };                 /* slots for each cell, at most */
    size_t bytes = c->list.n + count(c) * SLOTS_PER_CELL * sizeof *c->slots + c->names.taken;
    return c->most && count(c) >= CELLS_LEAST && bytes >= c->most;
}

/* Coordinates as unsigned numbers, in the same order. */
static uint64_t upwards(long v)
{
    return (uint64_t)v ^ (uint64_t)1 << 63;
}

static bool is_close(long a, long b, uint64_t side)
{
    return (a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a) < side;
}

static bool is_better(const struct dup_cluster *a, const struct dup_cluster *b)
{
    struct dup_worth x = dup_worth_of(a), y = dup_worth_of(b);
    return dup_worth_compare(&x, &y) < 0;
}

/* The slot of the cell, or the free slot for it. slots must not be NULL. NULL: the cell belongs to another round. */
static uint32_t *slot_of(const struct dup_cells *c, uint64_t side, uint64_t column, uint64_t row)
{
    uint64_t hash = (column * 0x9e3779b97f4a7c15 ^ row) * 0xff51afd7ed558ccd;
    if ((hash >> 32 & c->more_rounds) != c->round)
        return NULL;
    for (size_t at = hash ^ hash >> 32;; at++) {
        uint32_t *slot = &c->slots[at & (c->n_slots - 1)];
        const struct dup_coords *coords = *slot ? &cells_of(c)[*slot - 1].cluster.coords : NULL;
        if (!coords || (upwards(coords->x) - column * side < side && upwards(coords->y) - row * side < side))
            return slot;
    }
}

static int slots_grow(struct dup_cells *c, uint64_t side)
{
    size_t n = c->n_slots ? 2 * c->n_slots : SLOTS_LEAST;
    uint32_t *slots = calloc(n, sizeof *slots);
    if (!slots)
        return -1;
    free(c->slots);
    c->slots = slots;
    c->n_slots = n;
    for (uint32_t i = 0; i < count(c); i++) {
        const struct dup_coords *coords = &cells_of(c)[i].cluster.coords;
        *slot_of(c, side, upwards(coords->x) / side, upwards(coords->y) / side) = i + 1;
    }
    return 0;
}

int dup_cells_add(struct dup_cells *c, const struct dup_marker *to, const struct dup_cluster *cluster, uint64_t member)
{
    uint64_t side = (uint64_t)to->distance + 1;
    if (2 * count(c) >= c->n_slots && slots_grow(c, side) < 0)
        return -1;
    uint32_t *slot = slot_of(c, side, upwards(cluster->coords.x) / side, upwards(cluster->coords.y) / side);
    if (!slot)
        return 0;
    struct cell best = {.cluster = *cluster, .member = member}, *cell = *slot ? &cells_of(c)[*slot - 1] : NULL;
    if (cell && !is_better(cluster, &cell->cluster))
        return 0;
    if (!cell && is_full(c))
        return 1;
    size_t n = strlen(cluster->name) + 1;
    if (!(best.name = small_pool_take(&c->names, n)))
        return -1;
    best.cluster.name = memcpy(small_pool_at(&c->names, best.name), cluster->name, n);
    if (cell) {
        small_pool_give(&c->names, cell->name, strlen(cell->cluster.name) + 1);
        *cell = best;
        return 0;
    }
    *slot = (uint32_t)count(c) + 1;
    return byte_buffer_append(&c->list, &best, sizeof best);
}

void dup_cells_compare(struct dup_cells *c, const struct dup_marker *to, const struct dup_cluster *cluster,
                       uint64_t member)
{
    uint64_t side = (uint64_t)to->distance + 1;
    uint64_t column = upwards(cluster->coords.x) / side, row = upwards(cluster->coords.y) / side;
    const uint32_t *slot = slot_of(c, side, column, row);
    if (slot && cells_of(c)[*slot - 1].member != member)
        to->mark(to->context, member, cluster);
    for (int i = 0; i < 9; i++) {
        slot = slot_of(c, side, column + (uint64_t)(i % 3) - 1, row + (uint64_t)(i / 3) - 1);
        struct cell *cell = slot && *slot ? &cells_of(c)[*slot - 1] : NULL;
        if (cell && !cell->is_worse && is_close(cluster->coords.x, cell->cluster.coords.x, side)
            && is_close(cluster->coords.y, cell->cluster.coords.y, side) && is_better(cluster, &cell->cluster))
            cell->is_worse = true;
    }
}

void dup_cells_end(struct dup_cells *c, const struct dup_marker *to)
{
    for (size_t i = 0; i < count(c); i++) {
        const struct cell *cell = &cells_of(c)[i];
        if (cell->is_worse || cell->cluster.optical)
            to->mark(to->context, cell->member, &cell->cluster);
        small_pool_give(&c->names, cell->name, strlen(cell->cluster.name) + 1);
    }
    assert(c->names.taken == 0);
    if (c->n_slots > SLOTS_KEPT) {
        dup_cells_free(c);
        return;
    }
    byte_buffer_trim(&c->list, LIST_KEPT);
    if (c->slots)
        memset(c->slots, 0, c->n_slots * sizeof *c->slots);
}
