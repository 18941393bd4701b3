/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "stats/stats_range.h"

enum { BINS_MOST = 1 << 16 };    /* 12 bytes each */

struct stats_range {
    const struct stats_depth_bins *bins;
    struct stats_ring ring;
    struct stats_ring_start start;
    size_t size;                 /* number of cells that the ring is to have */
    bool is_left;                /* its content no longer counts */
    bool any;                    /* there is a record */
    bool odd;                    /* it has to be counted from the log */
    int32_t first_ref, ref;      /* references of the first record and of the last one */
    int64_t first;               /* place of the first record */
    bool turned;                 /* the reference changed ... */
    uint64_t n_left;             /* ... when this many cells had been left */
};

bool stats_range_takes(const struct stats_depth_bins *bins)
{
    return bins->n <= BINS_MOST;
}

static int resize(struct stats_range *range, size_t size)
{
    uint32_t *cells = calloc(size, sizeof *cells), *first = calloc(size, sizeof *first);
    if (!cells || !first) {
        free(cells);
        free(first);
        return -1;
    }
    free(range->ring.cells);
    free(range->start.first);
    range->ring.cells = cells;
    range->ring.size = size;
    range->start.first = first;
    return 0;
}

static int clear(struct stats_range *range)
{
    size_t size = range->size;
    struct stats_ring *ring = &range->ring;
    struct stats_ring_start *start = &range->start;
    for (size_t i = 0; i < start->n_bins; i++) {
        ring->left[start->bins[i]] = 0;
        start->is_listed[start->bins[i]] = false;
    }
    if (ring->size != size || !start->first) {
        if (resize(range, size) < 0)
            return -1;
    } else {
        for (int64_t i = 0; i < ring->reach - ring->at; i++)
            ring->cells[(ring->head + (size_t)i) % size] = 0;
        memset(start->first, 0, start->n_first * sizeof *start->first);
    }
    ring->start = start;
    ring->head = 0;
    ring->at = ring->reach = 0;
    start->n_first = start->n_bins = 0;
    start->n_left = range->n_left = 0;
    range->is_left = range->any = range->odd = range->turned = false;
    return 0;
}

struct stats_range *stats_range_open(const struct stats_depth_bins *bins, size_t size)
{
    struct stats_range *range = calloc(1, sizeof *range);
    if (!range)
        return NULL;
    range->bins = bins;
    range->start.bins = calloc(bins->n, sizeof *range->start.bins);
    range->start.is_listed = calloc(bins->n, sizeof *range->start.is_listed);
    range->size = size;
    if (range->start.bins && range->start.is_listed && stats_ring_open(&range->ring, bins) == 0 && clear(range) == 0)
        return range;
    stats_range_close(range);
    return NULL;
}

void stats_range_close(struct stats_range *range)
{
    if (!range)
        return;
    stats_ring_close(&range->ring);
    free(range->start.bins);
    free(range->start.is_listed);
    free(range->start.first);
    free(range);
}

static void begin(struct stats_range *range, int32_t ref, int32_t pos)
{
    range->any = true;
    range->odd = ref < 0;        /* samtools leaves all cells before each such record */
    range->first_ref = range->ref = ref;
    range->first = range->ring.at = range->ring.reach = pos;
}

/* Changes to a new reference. Cells have depths from before the range on the first reference only. */
static void turn(struct stats_range *range, int32_t ref)
{
    range->odd = range->odd || ref < 0 || !stats_ring_is_short(&range->ring);
    stats_ring_move(&range->ring, range->bins, -1);
    if (!range->turned)
        range->n_left = range->start.n_left;
    range->turned = true;
    range->ref = ref;
}

int stats_range_add(struct stats_range *range, int32_t ref, int32_t pos, const struct stats_block *blocks, size_t n)
{
    if (range->is_left && clear(range) < 0)
        return -1;
    if (!range->any)
        begin(range, ref, pos);
    else if (ref != range->ref)
        turn(range, ref);
    range->odd |= pos < 0;       /* such a place is not apart from -1, which clears the ring */
    stats_ring_move(&range->ring, range->bins, pos);
    for (size_t i = 0; i < n; i++)
        stats_ring_cover(&range->ring, blocks[i].begin, blocks[i].end);
    return 0;
}

/* Returns true if the range can be joined to the ring. A change of reference moves cells to other places. So a range
 * that changed its reference must have left, before the change, all cells that the ring still has after it has moved to
 * the first place of the range. */
static bool can_join(const struct stats_range *range, const struct stats_ring *ring, int32_t ref)
{
    if (range->is_left || range->odd || range->ring.size != ring->size)
        return false;
    int64_t size = (int64_t)ring->size, carried = ring->reach - range->first;
    if (ref != range->first_ref || range->first - ring->at >= size)
        carried = stats_ring_is_short(ring) ? 0 : size;
    return !range->turned || carried <= (int64_t)range->n_left;
}

/* If the ring stands for a range, copies the depths of the cells that `range` leaves for the first time and that the
 * ring has not left before. join_left() adds the depths from before `range`. */
static void join_first(const struct stats_range *range, struct stats_ring *ring)
{
    struct stats_ring_start *to = ring->start;
    const struct stats_ring_start *from = &range->start;
    if (!to || to->n_left >= ring->size)
        return;
    size_t room = ring->size - (size_t)to->n_left, n = from->n_first < room ? from->n_first : room;
    memcpy(to->first + to->n_left, from->first, n * sizeof *to->first);
    to->n_first = (size_t)to->n_left + n;
}

/* Counts and clears a cell that was not 0 before the range, and that the range left with `depth`. at: the number of
 * cells that the ring had left before it. */
static void leave_cell(const struct stats_range *range, struct stats_ring *ring, uint32_t *cell, uint32_t depth,
                       uint64_t at)
{
    struct stats_ring_start *start = ring->start;
    if (depth)
        ring->left[stats_depth_bin(range->bins, depth)]--;
    stats_ring_count_left(ring, stats_depth_bin(range->bins, *cell + depth), 1);
    if (start && at < ring->size) {
        start->first[at] = *cell + depth;
        if (start->n_first <= at)
            start->n_first = (size_t)at + 1;
    }
    *cell = 0;
}

/* Counts and clears the cells that the range has passed, among the n cells that were not 0 before it. */
static void join_left(const struct stats_range *range, struct stats_ring *ring, size_t n)
{
    const struct stats_ring_start *from = &range->start;
    uint64_t before = ring->start ? ring->start->n_left : 0;
    for (size_t i = 0; i < from->n_bins; i++)
        stats_ring_count_left(ring, from->bins[i], range->ring.left[from->bins[i]]);
    join_first(range, ring);
    for (size_t i = 0; i < n && i < from->n_left; i++) {
        uint32_t *cell = &ring->cells[(ring->head + i) % ring->size];
        if (*cell > 0)
            leave_cell(range, ring, cell, i < from->n_first ? from->first[i] : 0, before + i);
    }
    if (ring->start)
        ring->start->n_left += from->n_left;
}

/* Adds the cells that the range has at its end, and moves the ring there. n_before: the number of cells that were not 0
 * before the range. */
static void join_end(const struct stats_range *range, struct stats_ring *ring, uint64_t n_before)
{
    const struct stats_ring *end = &range->ring;
    uint64_t n_left = range->start.n_left;
    size_t begin = range->turned ? 0 : ring->head, n = end->reach > end->at ? (size_t)(end->reach - end->at) : 0;
    for (size_t i = 0; i < n; i++)
        ring->cells[(begin + end->head + i) % ring->size] += end->cells[(end->head + i) % end->size];
    int64_t reach = end->at + (int64_t)(n_before > n_left ? n_before - n_left : 0);
    ring->head = (begin + end->head) % ring->size;
    ring->at = end->at;
    ring->reach = reach > end->reach ? reach : end->reach;
}

/* Joins the range to a ring that was moved to the first place of the range. */
static void join(const struct stats_range *range, struct stats_ring *ring)
{
    size_t n = ring->reach > ring->at ? (size_t)(ring->reach - ring->at) : 0;
    join_left(range, ring, n);
    join_end(range, ring, n);
}

bool stats_range_join(const struct stats_range *range, struct stats_ring *ring, int32_t ref)
{
    if (!can_join(range, ring, ref))
        return false;
    if (ref != range->first_ref)
        stats_ring_move(ring, range->bins, -1);
    stats_ring_move(ring, range->bins, range->first);
    join(range, ring);
    return true;
}

bool stats_range_pair(struct stats_range *left, struct stats_range *right)
{
    bool turns = left->ref != right->first_ref;
    if (left->odd || (turns && !stats_ring_is_short(&left->ring)) || !can_join(right, &left->ring, left->ref))
        return false;
    if (turns)
        turn(left, right->first_ref);
    stats_ring_move(&left->ring, left->bins, right->first);
    uint64_t n_left = left->start.n_left;
    join(right, &left->ring);
    if (right->turned && !left->turned)
        left->n_left = n_left + right->n_left;
    left->turned = left->turned || right->turned;
    left->ref = right->ref;
    right->is_left = true;
    return true;
}

void stats_range_leave(struct stats_range *range, size_t size)
{
    range->is_left = true;
    range->size = size;
}

size_t stats_range_memory(size_t bins, size_t n)
{
    return sizeof(struct stats_range) + stats_ring_memory(bins, n) + bins * (sizeof(uint32_t) + sizeof(bool))
         + (STATS_RING_SIZE + 5 * n) * sizeof(uint32_t);
}
