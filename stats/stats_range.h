/* SPDX-License-Identifier: MIT */
/* The coverage of a range of records, counted by the task that counts these, so that whoever joins ranges does not look
 * at each record: a ring that is empty at the first record. Positions alone decide which cell is left when, and depths
 * add up, so what comes from before shows once in each cell, when that is left for the first time:
 *
 *     cells of the ring before, from its head on    | c0 | c1 | c2 | c3 | c4 | ..
 *     the range left so many of them                 ------------>
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

/* size: cells of its ring. NULL: out of memory. */
struct stats_range *stats_range_open(const struct stats_depth_bins *bins, size_t size);
void stats_range_close(struct stats_range *range);

/* Whether ranges of this kind are kept: too many bins would take too much memory. */
bool stats_range_takes(const struct stats_depth_bins *bins);

/* Counts a record, in order, and its n blocks. -1: out of memory. */
int stats_range_add(struct stats_range *range, int32_t ref, int32_t pos, const struct stats_block *blocks, size_t n);

/* Joins the range to a ring whose last record was on reference `ref`. false: the ring is unchanged, and the range must
 * be counted from the log. */
bool stats_range_join(const struct stats_range *range, struct stats_ring *ring, int32_t ref);

/* It is joined, or it was counted from the log: it is empty, and its ring is to have so many cells from now on. The
 * next stats_range_add() makes it so, for the task that calls it has the cells in its cache. */
void stats_range_leave(struct stats_range *range, size_t size);

/* Bytes of memory with so many bins, for reads of up to n bases. */
size_t stats_range_memory(size_t bins, size_t n);

#endif
