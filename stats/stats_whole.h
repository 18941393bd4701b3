/* SPDX-License-Identifier: MIT */
/* The statistics that depend on the order of the records, for all ranges joined so far, from the beginning of the
 * stream on. It takes the logs of ranges one after the other, so its state is always that of one pass. */
#ifndef STATS_WHOLE_H
#define STATS_WHOLE_H

#include <stdbool.h>
#include <stdint.h>
#include "stats/stats_column.h"
#include "stats/stats_gcd.h"
#include "stats/stats_log.h"
#include "stats/stats_mates.h"
#include "stats/stats_range.h"
#include "stats/stats_ring.h"

struct stats_settings;

struct stats_whole {
    const struct stats_settings *settings;
    struct stats_ring ring;
    struct stats_gcd gcd;
    struct stats_mates mates;
    struct mate_table own_table; /* the table that `mates` uses, unless a shared one is used */
    struct stats_column mismatches;      /* MPC: 256 columns for each cycle */
    bool unsorted;
    int32_t ref, pos;            /* place of the last record; at first -1, 0 */
    int32_t entry_ref;           /* reference of the last entry; -2: there was none */
    uint32_t n_covered;          /* number of the next parts, those whose coverage was taken already */
    struct stats_sequence *sequence;     /* with -r, the sequence of that reference */
};

/* table: for -p, shared by the values of -S; NULL: the struct has one of its own. Returns NULL if out of memory. */
struct stats_whole *stats_whole_open(const struct stats_settings *settings, struct mate_table *table);
void stats_whole_close(struct stats_whole *whole);

/* Returns true if all records that were taken are in order, and the first record of the log is in order after them. */
bool stats_whole_goes_on(const struct stats_whole *whole, const struct stats_log *log);

/* Takes the log of the part that follows, and its coverage. Returns -1 if out of memory. */
int stats_whole_take(struct stats_whole *whole, const struct stats_log *log, const struct stats_cover *cover);

/* Returns the count of MPC in this cycle and this column. */
uint64_t stats_whole_mismatches(const struct stats_whole *whole, size_t cycle, size_t column);

/* Leaves all places. Call it once, at the end. */
void stats_whole_end(struct stats_whole *whole);

/* Returns the bytes of memory that the struct needs: `depths` bins of depth; bins of GC depth, each of size `gc_bin`,
 * for all references of the header; and mismatches of reads of up to n bases (n = 0: mismatches are not counted). */
size_t stats_whole_memory(size_t depths, int64_t gc_bin, sam_hdr_t *sam, size_t n);

#endif
