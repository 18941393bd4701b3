/* SPDX-License-Identifier: MIT */
/* The qualities of each cycle (FFQ, LFQ), of the reads of one end. Counters exist twice:
 *
 *   few   counters of 8 bits for the first QUALS_FEW qualities that come. 16 neighbouring qualities of a read are
 *         compared with each of them, and counted, at once. Machines that put qualities into bins have 4 to 8.
 *   hot   counters of 16 bits for all qualities, with a row for each and a column for each cycle. Qualities that are
 *         not among the few are counted here, one by one; all are, if there are more.
 *
 * Counters are added to the next larger ones before they can be full: few to hot, and hot to totals, which have 64
 * bits. */
#ifndef STATS_QUALS_H
#define STATS_QUALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    QUALS = 256,
    QUALS_FEW = 8,
    QUALS_BLOCK = 16,            /* qualities that are counted at once */
};

typedef uint8_t quals_block __attribute__((vector_size(QUALS_BLOCK)));

/* The counters of one block. For reverse reads, the last byte of a block belongs to its first cycle. */
struct quals_few {
    quals_block each[QUALS_FEW];
};

/* A zero-initialised struct is empty. */
struct stats_quals {
    size_t stride;               /* cycles that there is room for: the columns of a table */
    uint32_t n_levels;
    bool is_many;                /* more than QUALS_FEW qualities came */
    bool is_level[QUALS];
    struct quals_few levels;     /* the few qualities, each in a whole block. Unused ones are like the first */
    uint8_t level[QUALS_FEW];
    struct quals_few *few[2];    /* forward, reverse: stride / QUALS_BLOCK of them */
    uint32_t n_few, longest;     /* reads counted in `few`, and the longest of them */
    uint32_t n_hot;              /* reads counted in `few` or `hot` */
    uint16_t *hot;
    uint64_t *totals;            /* NULL: no counter was full yet */
    uint8_t seen;                /* the bitwise OR of the qualities that were counted. The row of a quality with another
                                  * bit has no counts */
};

void stats_quals_free(struct stats_quals *c);

/* Counts a read of n qualities. Returns -1 if out of memory. */
int stats_quals_add(struct stats_quals *c, bool is_reverse, const uint8_t *qual, uint32_t n);

/* Adds the counts of `from`, which is empty afterwards. Returns -1 if out of memory. */
int stats_quals_join(struct stats_quals *c, struct stats_quals *from);

/* Only totals are left after stats_quals_close(), which returns -1 if out of memory. */
int stats_quals_close(struct stats_quals *c);
uint64_t stats_quals_count(const struct stats_quals *c, size_t cycle, int quality);
uint64_t stats_quals_sum(const struct stats_quals *c, int quality);

/* Bytes of memory for reads of up to n bases; only rows that are used are included. */
size_t stats_quals_memory(size_t n);

#endif
