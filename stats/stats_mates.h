/* SPDX-License-Identifier: MIT */
/* With -p, bases that both ends of a template cover are counted once. The blocks of the end that comes first wait for
 * the other end in a table of names. samtools empties that table now and then, which affects its counts, so we do the
 * same. */
#ifndef STATS_MATES_H
#define STATS_MATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "stats/stats_log.h"
#include "stats/stats_ring.h"

struct waiting_mate;

/* A zero-initialised struct is empty. */
struct mate_table {
    struct waiting_mate **buckets;
    size_t n, mask;
};

void mate_table_free(struct mate_table *table);

/* A user of a table. With -S and -p, samtools has one table for all values of the tag, and each value counts the names
 * that it puts in and takes out. */
struct stats_mates {
    struct mate_table *table;
    uint32_t n;                  /* names put in less names taken out, modulo 2^32: others may have put in a name that
                                  * this takes out */
    uint32_t since;              /* records since the table was swept */
    uint64_t removed;            /* bases that were covered twice */
};

/* Removes the templates whose other end is no longer expected. Call it before each record. is_new: a reference
 * begins. */
void stats_mates_sweep(struct stats_mates *mates, int64_t pos, bool is_new);

/* Covers the bases of the blocks of a record that the other end of its template does not share. Returns -1 if out of
 * memory. */
int stats_mates_cover(struct stats_mates *mates, struct stats_ring *ring, const char *name, size_t name_n, uint32_t end,
                      const struct stats_block *blocks, size_t n);

#endif
