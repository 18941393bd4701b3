/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "stats/stats_ring.h"

int stats_depth_bins_set(struct stats_depth_bins *bins, int min, int max, int step)
{
    int64_t range = (int64_t)max - min;
    *bins = (struct stats_depth_bins){.min = min, .step = step};
    if (bins->step > range + 1)
        bins->step = range > 1 ? range : 1;
    int64_t k = range / bins->step;
    if (k < -2 || k > INT32_MAX - 3)
        return -1;
    bins->n = (size_t)(k + 3);
    bins->max = min + (k + 1) * bins->step - 1;
    return 0;
}

int stats_ring_open(struct stats_ring *ring, const struct stats_depth_bins *bins)
{
    *ring = (struct stats_ring){.size = STATS_RING_SIZE, .room = STATS_RING_READ};
    ring->cells = calloc(ring->size, sizeof *ring->cells);
    ring->left = calloc(bins->n, sizeof *ring->left);
    return ring->cells && ring->left ? 0 : -1;
}

void stats_ring_close(struct stats_ring *ring)
{
    free(ring->cells);
    free(ring->left);
    *ring = (struct stats_ring){0};
}

/* before: the number of cells that were counted and cleared before the n cells from `from` on. */
static void keep_first(const struct stats_ring *ring, size_t from, size_t n, uint64_t before)
{
    struct stats_ring_start *start = ring->start;
    if (!start || before >= ring->size)
        return;
    size_t kept = ring->size - before < n ? ring->size - (size_t)before : n;
    memcpy(start->first + before, ring->cells + from, kept * sizeof *start->first);
    start->n_first = (size_t)before + kept;
}

/* Counts the depths of the n cells from `from` on, and clears the cells. They do not wrap around. Neighbouring cells
 * mostly have the same depth, so each run of equal depths is counted at once. */
static void leave(struct stats_ring *ring, const struct stats_depth_bins *bins, size_t from, size_t n)
{
    uint32_t *cell = ring->cells + from, *end = cell + n;
    while (cell < end) {
        uint32_t depth = *cell;
        uint64_t run = 0;
        for (; cell < end && *cell == depth; cell++, run++)
            *cell = 0;
        if (depth)
            stats_ring_count_left(ring, stats_depth_bin(bins, depth), run);
    }
}

/* Counts and clears the n cells from the head on, which may wrap around, and moves the head after them. Cells from the
 * reach on are 0. */
static void leave_round(struct stats_ring *ring, const struct stats_depth_bins *bins, size_t n)
{
    size_t full = ring->reach > ring->at ? (size_t)(ring->reach - ring->at) : 0, used = full < n ? full : n;
    size_t straight = ring->size - ring->head < used ? ring->size - ring->head : used;
    uint64_t before = ring->start ? ring->start->n_left : 0;
    keep_first(ring, ring->head, straight, before);
    keep_first(ring, 0, used - straight, before + straight);
    leave(ring, bins, ring->head, straight);
    leave(ring, bins, 0, used - straight);
    ring->head = (ring->head + n) % ring->size;
    if (ring->start)
        ring->start->n_left += n;
}

void stats_ring_move(struct stats_ring *ring, const struct stats_depth_bins *bins, int64_t to)
{
    if (to == ring->at)
        return;
    bool is_far = to == -1 || to - ring->at >= (int64_t)ring->size, has_last = !stats_ring_is_short(ring);
    leave_round(ring, bins, is_far ? ring->size - 1 : (size_t)(to - ring->at));
    if (to == -1)
        ring->head = 0;
    ring->at = to;
    if (is_far)
        ring->reach = has_last ? to + (int64_t)ring->size : to;
}

/* Adds 1 to each of n cells, eight at a time. Compilers turn this into vector instructions. */
static void add_one(uint32_t *cells, size_t n)
{
    enum { AT_ONCE = 8 };
    size_t i = 0;
    for (; i + AT_ONCE <= n; i += AT_ONCE) {
        for (size_t j = 0; j < AT_ONCE; j++)
            cells[i + j]++;
    }
    for (; i < n; i++)
        cells[i]++;
}

void stats_ring_cover(struct stats_ring *ring, int64_t begin, int64_t end)
{
    int64_t most = ring->at + (int64_t)ring->size, reach = end < most ? end : most;
    size_t cell = (ring->head + (uint64_t)(begin - ring->at)) % ring->size;
    if (ring->reach < reach)
        ring->reach = reach;
    for (uint64_t rest = (uint64_t)(end - begin); rest > 0;) {
        size_t n = ring->size - cell < rest ? ring->size - cell : rest;
        add_one(ring->cells + cell, n);
        rest -= n;
        cell = 0;
    }
}

/* Copies n bytes of little-endian cells. */
static void copy_bytes(uint32_t *to, const uint32_t *from, size_t n)
{
    memcpy(to, from, n / 4 * sizeof *to);
    if (n % 4) {
        uint32_t mask = (UINT32_C(1) << 8 * (n % 4)) - 1;
        to[n / 4] = (to[n / 4] & ~mask) | (from[n / 4] & mask);
    }
}

/* samtools counts bytes where it means cells, so it keeps only a quarter of the depths, and at another place. */
int stats_ring_fit(struct stats_ring *ring, uint32_t length)
{
    if (length < ring->room)
        return 0;
    size_t size = 5 * (size_t)length, behind = ring->size - ring->head;
    uint32_t *cells = calloc(size, sizeof *cells);
    if (!cells)
        return -1;
    copy_bytes(cells, ring->cells + ring->head, behind);
    if (ring->head > 1)
        copy_bytes(cells + behind, ring->cells, ring->head);
    free(ring->cells);
    ring->cells = cells;
    ring->size = size;
    ring->head = 0;
    ring->reach = ring->at + (int64_t)size;
    ring->room = 2 + 2 * (int64_t)length - ring->room;
    return 0;
}

size_t stats_ring_memory(size_t bins, size_t n)
{
    return bins * sizeof(uint64_t) + (STATS_RING_SIZE + 5 * n) * sizeof(uint32_t);
}
