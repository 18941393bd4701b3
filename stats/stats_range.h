/* SPDX-License-Identifier: MIT */
/* The coverage of a range of records. The task that counts the records also counts the coverage, so that the thread
 * that joins ranges does not look at each record. The coverage is a ring that is empty at the first record.
 * Positions alone decide when each cell is left, and depths add up. So the depths from before the range show once in
 * each cell, when it is left for the first time:
 *
 *     cells of the ring before, from its head on    | c0 | c1 | c2 | c3 | c4 | ..
 *     the range left this many of them               ------------>
 *     with these depths (stats_ring_start)          | f0 | f1 | f2 |
 *     and ends with these                                          | e3 | e4 | ..
 *     joined: bins of c0+f0, c1+f1, c2+f2; cells                   | c3+e3 | c4+e4 | ..
 *
 * A range that began on another reference, or with another size of ring, may have to be counted again from its log. */
#ifndef STATS_RANGE_H
#define STATS_RANGE_H

#include <stdbool.h>
#include "stats/stats_ring.h"

struct stats_range;

/* Where the coverage of a part of the records is kept. */
struct stats_cover {
    struct stats_range *range;   /* NULL: none yet, or the coverage is counted when the part is joined */
    uint32_t n_more;             /* number of parts after this one whose coverage `range` has, too */
    uint32_t longest;            /* the longest read of those parts that made an entry in a log; 0: none did */
    bool is_before;              /* `range` is not used: the range of an earlier part has the coverage */
};

/* size: the number of cells of its ring. Returns NULL if out of memory. */
struct stats_range *stats_range_open(const struct stats_depth_bins *bins, size_t size);
void stats_range_close(struct stats_range *range);

/* Returns true if ranges with these bins are kept: too many bins would take too much memory. */
bool stats_range_takes(const struct stats_depth_bins *bins);

/* Counts a record and its n blocks. Records come in order. Returns -1 if out of memory. */
int stats_range_add(struct stats_range *range, int32_t ref, int32_t pos, const struct stats_block *blocks, size_t n);

/* Joins the range to a ring whose last record was on reference `ref`. Returns false if the range must be counted from
 * the log; the ring is unchanged then. */
bool stats_range_join(const struct stats_range *range, struct stats_ring *ring, int32_t ref);

/* Joins `right`, which follows, to `left`. Both have records. Afterwards `left` is the range of the records of both,
 * and `right` is empty. Returns false if this is not possible; then both are unchanged. */
bool stats_range_pair(struct stats_range *left, struct stats_range *right);

/* Call it when the range is joined, or was counted from the log. The range is empty afterwards, and its ring is to have
 * `size` cells from now on. The next stats_range_add() does this work, because the task that calls it has the cells in
 * its cache. */
void stats_range_leave(struct stats_range *range, size_t size);

/* Bytes of memory for this many bins, and reads of up to n bases. */
size_t stats_range_memory(size_t bins, size_t n);

#endif
