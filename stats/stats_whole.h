/* SPDX-License-Identifier: MIT */
/* The statistics that depend on the order of the records, for all ranges that were joined so far, from the beginning of
 * the stream on. It takes the logs of ranges one after the other, so its state is always that of one pass. */
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
    struct mate_table own_table; /* where mates look, unless the table is shared */
    struct stats_column mismatches;      /* MPC: 256 columns for each cycle */
    bool unsorted;
    int32_t ref, pos;            /* of the last record; at first -1, 0 */
    int32_t entry_ref;           /* of the last entry; -2: there was none */
    struct stats_sequence *sequence;     /* with -r, of that reference */
};

/* table: for -p, shared by those of -S; NULL: it has one of its own. NULL: out of memory. */
struct stats_whole *stats_whole_open(const struct stats_settings *settings, struct mate_table *table);
void stats_whole_close(struct stats_whole *whole);

/* Whether the first record of the log is in order behind all that were taken, and these are, too. */
bool stats_whole_goes_on(const struct stats_whole *whole, const struct stats_log *log);

/* Takes the log of the range that follows, and its coverage, if that was counted already; else NULL. -1: out of
 * memory. */
int stats_whole_take(struct stats_whole *whole, const struct stats_log *log, const struct stats_range *range);

/* The counts of MPC in a cycle, in a column. */
uint64_t stats_whole_mismatches(const struct stats_whole *whole, size_t cycle, size_t column);

/* Leaves all places: call it once, at the end. */
void stats_whole_end(struct stats_whole *whole);

/* Bytes of memory with so many bins of depth, and of GC depth of that size, for records on all of these references and
 * mismatches of reads of up to n bases (0: of none). */
size_t stats_whole_memory(size_t depths, int64_t gc_bin, sam_hdr_t *sam, size_t n);

#endif
