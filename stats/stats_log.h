/* SPDX-License-Identifier: MIT */
/* The log of one range of records: everything that depends on earlier records, for the thread that joins ranges. It
 * lists the records that reach the check of the order, as long as the range is in order, and the reads that make the
 * ring of the coverage grow.
 *
 *     visits    reference 0 ......................................  reference 1 ..
 *     entries   record | record | longer read | record              record ...
 *     places    5        7                      7                   1            GC in an array of its own
 *     blocks    2        1                      1                   0
 *
 * The log is emptied, not freed, between two ranges. A join mostly looks at visits and GC only. */
#ifndef STATS_LOG_H
#define STATS_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STATS_RING_READ = 300 };  /* at first, a ring has room for reads shorter than this */

/* Bases of a reference, counted from 0. */
struct stats_block {
    int64_t begin, end;
};

/* Consecutive records on one reference. */
struct stats_visit {
    int32_t ref;
    uint32_t first;              /* number of the first of these records */
};

struct stats_entry {
    bool is_longer;              /* not a record, but a read that is longer than all before it */
    uint32_t n_blocks;           /* blocks of a record */
    uint32_t span;               /* span of a record, with -r: bases of the read and its deletions; of a longer read:
                                  * its bases */
};

/* With -p, for each record: */
struct stats_mate {
    uint32_t name_at, name_n;    /* in `names` */
    uint32_t end;                /* 0 or 1; STATS_ALONE: its blocks count without the other end */
};

enum { STATS_ALONE = 2 };

struct stats_log {
    struct stats_visit *visits;
    struct stats_entry *entries;
    int32_t *places;             /* POS of the records */
    float *gc;                   /* share of G and C of the records */
    struct stats_block *blocks;
    struct stats_mate *mates;
    uint64_t *mismatches;        /* cycle * 256 + column of MPC */
    char *names;
    size_t n_visits, n_entries, n_records, n_blocks, n_mates, n_mismatches, n_names;
    size_t room_visits, room_entries, room_places, room_gc, room_blocks, room_mates, room_mismatches, room_names;
    uint32_t longest;            /* length of the longest read that made an entry */
    /* The order inside the range. */
    bool any;                    /* a record reached the check */
    bool unsorted;               /* a record is out of order: from it on, only longer reads are kept */
    int32_t first_ref, first_pos, last_ref, last_pos;
};

/* A zero-initialised struct is empty. */
void stats_log_free(struct stats_log *log);
void stats_log_clear(struct stats_log *log);

/* Notes the length of a read. Returns -1 if out of memory. */
int stats_log_length(struct stats_log *log, uint32_t whole);

/* Checks whether the record is in order, and sets log->unsorted if it is not. */
void stats_log_order(struct stats_log *log, int32_t ref, int32_t pos);

/* Returns true if both logs have records, all records of `log` are in order, and the first record of `right`, which
 * follows, is in order after them. */
bool stats_log_goes_on(const struct stats_log *log, const struct stats_log *right);

/* Begins a record that is in order. It has no blocks yet. Returns -1 if out of memory. */
int stats_log_record(struct stats_log *log, int32_t ref, int32_t pos, uint32_t span, float gc);

/* Add a block, a mate and a mismatch to that record. They return -1 if out of memory. */
int stats_log_block(struct stats_log *log, int64_t begin, int64_t end);
int stats_log_mate(struct stats_log *log, const char *name, size_t n, uint32_t end);
int stats_log_mismatch(struct stats_log *log, uint64_t cycle, unsigned column);

/* Bytes of memory for this many bytes of records. The reads are assumed to have at least 36 bases, and one CIGAR
 * operation for every 8 bases. with_mismatches: one base in 8 differs (-r); with_mates: with names (-p). */
size_t stats_log_memory(size_t bytes, bool with_mismatches, bool with_mates);

#endif
