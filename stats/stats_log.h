/* SPDX-License-Identifier: MIT */
/* What one range of records leaves for those who join ranges: all that depends on records before. The records that
 * reach the check of the order, while the range is in order, and what makes the ring of the coverage grow.
 *
 *     visits    reference 0 ......................................  reference 1 ..
 *     entries   record | record | longer read | record              record ...
 *     places    5        7                      7                   1            GC in an array of its own
 *     blocks    2        1                      1                   0
 *
 * It is emptied, not freed, between two ranges. A join mostly looks at visits and GC only. */
#ifndef STATS_LOG_H
#define STATS_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STATS_RING_READ = 300 };  /* a ring has room for reads shorter than this, at first */

/* Bases of a reference, from 0 on. */
struct stats_block {
    int64_t begin, end;
};

/* Records on one reference, one behind the other. */
struct stats_visit {
    int32_t ref;
    uint32_t first;              /* number of the first of them */
};

struct stats_entry {
    bool is_longer;              /* no record, but a read that is longer than all before */
    uint32_t n_blocks;           /* of a record */
    uint32_t span;               /* of a record, with -r: bases of the read and its deletions; else bases of the read */
};

/* With -p, for each record: */
struct stats_mate {
    uint32_t name_at, name_n;    /* in `names` */
    uint32_t end;                /* 0, 1; STATS_ALONE: its blocks just count */
};

enum { STATS_ALONE = 2 };

struct stats_log {
    struct stats_visit *visits;
    struct stats_entry *entries;
    int32_t *places;             /* of the records; POS */
    float *gc;                   /* of the records: share of G and C */
    struct stats_block *blocks;
    struct stats_mate *mates;
    uint64_t *mismatches;        /* cycle * 256 + column of MPC */
    char *names;
    size_t n_visits, n_entries, n_records, n_blocks, n_mates, n_mismatches, n_names;
    size_t room_visits, room_entries, room_places, room_gc, room_blocks, room_mates, room_mismatches, room_names;
    uint32_t longest;            /* length of the longest read that made an entry */
    /* The order inside the range. */
    bool any;                    /* a record reached the check */
    bool unsorted;               /* then nothing but longer reads is kept from that record on */
    int32_t first_ref, first_pos, last_ref, last_pos;
};

/* A zero-initialised struct is empty. */
void stats_log_free(struct stats_log *log);
void stats_log_clear(struct stats_log *log);

/* Notes the length of a read. -1: out of memory. */
int stats_log_length(struct stats_log *log, uint32_t whole);

/* Looks whether the record is in order. Afterwards log->unsorted says so. */
void stats_log_order(struct stats_log *log, int32_t ref, int32_t pos);

/* Begins a record that is in order, without blocks yet. -1: out of memory. */
int stats_log_record(struct stats_log *log, int32_t ref, int32_t pos, uint32_t span, float gc);

/* For that record. -1: out of memory. */
int stats_log_block(struct stats_log *log, int64_t begin, int64_t end);
int stats_log_mate(struct stats_log *log, const char *name, size_t n, uint32_t end);
int stats_log_mismatch(struct stats_log *log, uint64_t cycle, unsigned column);

/* Bytes of memory for so many bytes of records: of reads that are no shorter than 36 bases, with an operation of the
 * CIGAR for each 8 of them; with_mismatches: one base in 8 differs (-r); with_mates: with names (-p). */
size_t stats_log_memory(size_t bytes, bool with_mismatches, bool with_mates);

#endif
