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

/* Leaves the n cells from `from` on, which do not go round. Neighbours mostly have the same depth. */
static void leave(struct stats_ring *ring, const struct stats_depth_bins *bins, size_t from, size_t n)
{
    uint32_t *cell = ring->cells + from, *end = cell + n;
    while (cell < end) {
        uint32_t depth = *cell;
        uint64_t run = 0;
        for (; cell < end && *cell == depth; cell++, run++)
            *cell = 0;
        if (depth)
            ring->left[stats_depth_bin(bins, depth)] += run;
    }
}

static void leave_round(struct stats_ring *ring, const struct stats_depth_bins *bins, size_t n)
{
    size_t straight = ring->size - ring->head < n ? ring->size - ring->head : n;
    leave(ring, bins, ring->head, straight);
    leave(ring, bins, 0, n - straight);
    ring->head = (ring->head + n) % ring->size;
}

void stats_ring_move(struct stats_ring *ring, const struct stats_depth_bins *bins, int64_t to)
{
    if (to == ring->at)
        return;
    bool is_far = to == -1 || to - ring->at >= (int64_t)ring->size;
    leave_round(ring, bins, is_far ? ring->size - 1 : (size_t)(to - ring->at));
    if (to == -1)
        ring->head = 0;
    ring->at = to;
}

void stats_ring_cover(struct stats_ring *ring, int64_t begin, int64_t end)
{
    size_t cell = (ring->head + (uint64_t)(begin - ring->at)) % ring->size;
    for (uint64_t rest = (uint64_t)(end - begin); rest > 0;) {
        size_t n = ring->size - cell < rest ? ring->size - cell : rest;
        uint32_t *cells = ring->cells + cell;
        for (size_t i = 0; i < n; i++)
            cells[i]++;
        rest -= n;
        cell = 0;
    }
}

/* Copies so many bytes of little-endian cells. */
static void copy_bytes(uint32_t *to, const uint32_t *from, size_t n)
{
    memcpy(to, from, n / 4 * sizeof *to);
    if (n % 4) {
        uint32_t mask = (UINT32_C(1) << 8 * (n % 4)) - 1;
        to[n / 4] = (to[n / 4] & ~mask) | (from[n / 4] & mask);
    }
}

/* samtools counts bytes where it means cells, so that a quarter of the depths is kept, and that at another place. */
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
    ring->room = 2 + 2 * (int64_t)length - ring->room;
    return 0;
}
