/* SPDX-License-Identifier: MIT */
/* Bases and qualities of each cycle (FFQ, LFQ, GCC, GCT, FBC, LBC). `stats` spends most of its time here, so the
 * tables are made for the cache:
 *
 *   - a counter has 16 bits; after 65,535 records all counters are added to `totals`, which have 64 bits;
 *   - a table has a row for each quality and a column for each cycle. Files have few qualities, so few rows are used,
 *     and a run of one quality adds 1 to neighbouring counters, eight at a time;
 *   - bases are counted two at a time, as a byte of SEQ has them. The place of the pairs of a reverse read depends on
 *     whether its length is odd, so reverse reads have two tables of their own:
 *
 *         pair number          0     1     2    ..
 *         forward        cycles 0 1   2 3   4 5  ..
 *         reverse, even  cycles 1 0   3 2   5 4  ..   from the last byte on
 *         reverse, odd   cycles 0 -   2 1   4 3  ..   from the last byte on, which has one base
 */
#ifndef STATS_CYCLES_H
#define STATS_CYCLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum stats_base { STATS_A, STATS_C, STATS_G, STATS_T, STATS_N, STATS_O, STATS_BASES };

enum {
    CYCLE_BASES = STATS_BASES + 1,       /* and no base, in the pair of the last base */
    CYCLE_PAIRS = CYCLE_BASES * CYCLE_BASES,
    CYCLE_WAYS = 3,              /* forward, reverse of even length, reverse of odd length */
    CYCLE_ENDS = 2,              /* first, last */
    CYCLE_QUALS = 256,
};

/* The counters. The tables of one width lie one after the other in one allocation: qualities of both ends, then
 * pairs. */
struct stats_cycles {
    size_t stride;               /* cycles that there is room for: the columns of a table of qualities */
    uint32_t pair_at[256];       /* where the row of a byte of SEQ begins in a table of pairs */
    uint32_t n_records;          /* records counted in `hot` */
    uint16_t *hot;
    uint64_t *totals;            /* NULL: no counter was full yet */
    uint8_t seen[CYCLE_ENDS];    /* the bitwise OR of the qualities that were counted. The row of a quality with another
                                  * bit has no counts */
};

/* A zero-initialised struct is empty. */
void stats_cycles_free(struct stats_cycles *c);

/* Counts a read of n bases. end: 0 first, 1 last. Returns -1 if out of memory. */
int stats_cycles_add(struct stats_cycles *c, int end, bool is_reverse, const uint8_t *seq, const uint8_t *qual,
                     uint32_t n);

/* Adds the counts of `from`, which is empty afterwards. Returns -1 if out of memory. */
int stats_cycles_join(struct stats_cycles *c, struct stats_cycles *from);

/* Only totals are left after stats_cycles_close(), which returns -1 if out of memory. */
int stats_cycles_close(struct stats_cycles *c);
uint64_t stats_cycles_quality(const struct stats_cycles *c, int end, size_t cycle, int quality);
uint64_t stats_cycles_quality_sum(const struct stats_cycles *c, int end, int quality);

/* Adds the bases of a cycle to `seq` as SEQ has them, and to `read` as they were read (complemented if reverse; only
 * the first four). */
void stats_cycles_bases(const struct stats_cycles *c, int end, size_t cycle, uint64_t seq[STATS_BASES],
                        uint64_t read[STATS_BASES]);

/* Bytes of memory for reads of up to n bases; only rows that are used are included. */
size_t stats_cycles_memory(size_t n);

/* Returns the number of G and C among n bases. */
uint32_t stats_cycles_gc(const uint8_t *seq, uint32_t n);

#endif
