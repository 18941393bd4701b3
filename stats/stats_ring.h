/* SPDX-License-Identifier: MIT */
/* The depth of the places of a reference that reads may still cover (COV). samtools keeps them in a ring, which
 * shows in what it prints: a block that reaches further ahead than the ring is long wraps around, and some depths
 * are lost when longer reads make the ring grow. We keep the same ring to print the same numbers.
 *
 *     cells   | .. | left | at | at+1 | .. | at+size-1 (mod size) |
 *                           ^ head
 */
#ifndef STATS_RING_H
#define STATS_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "stats/stats_log.h"

enum {
    STATS_RING_SIZE = 5 * STATS_RING_READ,       /* cells of a ring at first */
};

/* The bins of -c MIN,MAX,STEP, as samtools corrects them. */
struct stats_depth_bins {
    int64_t min, max, step;
    size_t n;                    /* number of bins, with one for lower and one for larger depths */
};

/* Returns -1 if MIN, MAX, STEP need more memory than there is. */
int stats_depth_bins_set(struct stats_depth_bins *bins, int min, int max, int step);

static inline size_t stats_depth_bin(const struct stats_depth_bins *b, uint32_t depth)
{
    if (depth < b->min)
        return 0;
    size_t bin = depth > b->max ? b->n - 1 : 1 + (size_t)((depth - b->min) / b->step);
    return bin < b->n ? bin : b->n - 1;
}

struct stats_ring {
    uint32_t *cells;
    size_t size, head;
    int64_t at;                  /* the place of cell `head`; -1: a place on no reference */
    int64_t room;                /* a read of this length makes it grow */
    int64_t reach;               /* cells from this place on are 0; at most at + size */
    uint64_t *left;              /* for each bin, the number of cells that were left with such a depth */
    struct stats_ring_start *start;      /* set if the ring stands for a range of records; else NULL */
};

/* The numbers that a range keeps in addition to its ring, so that it can be joined to the records before it
 * (stats_range.h). */
struct stats_ring_start {
    uint32_t *first;             /* for each cell from the first head on, its depth when it was left for the first
                                  * time */
    size_t n_first;              /* cells after these have no such depth, or a depth of 0 */
    uint64_t n_left;             /* number of cells that were left, one after the other: the head moves this far */
    uint32_t *bins;              /* n_bins numbers: all bins of `left` that are not 0 */
    size_t n_bins;
    bool *is_listed;             /* for each bin, whether it is among `bins` */
};

/* Returns -1 if out of memory. */
int stats_ring_open(struct stats_ring *ring, const struct stats_depth_bins *bins);
void stats_ring_close(struct stats_ring *ring);

/* Bytes of memory for this many bins, and reads of up to n bases. */
size_t stats_ring_memory(size_t bins, size_t n);

/* Returns true if the last cell is 0: nothing wrapped around, and no such cell is kept. */
static inline bool stats_ring_is_short(const struct stats_ring *ring)
{
    return ring->reach < ring->at + (int64_t)ring->size;
}

/* Leaves all cells before place `to`; -1: all cells of this reference. If a move leaves so many cells at once that it
 * goes around the ring, samtools keeps the last cell. */
void stats_ring_move(struct stats_ring *ring, const struct stats_depth_bins *bins, int64_t to);

/* Adds n to the number of cells that were left with a depth in this bin. */
static inline void stats_ring_count_left(struct stats_ring *ring, size_t bin, uint64_t n)
{
    struct stats_ring_start *start = ring->start;
    if (start && !start->is_listed[bin]) {
        start->is_listed[bin] = true;
        start->bins[start->n_bins++] = (uint32_t)bin;
    }
    ring->left[bin] += n;
}

/* Adds 1 to the depth of the places of a block. */
void stats_ring_cover(struct stats_ring *ring, int64_t begin, int64_t end);

/* Grows the ring if it has no room for a read of this length. Returns -1 if out of memory. */
int stats_ring_fit(struct stats_ring *ring, uint32_t length);

#endif
