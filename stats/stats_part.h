/* SPDX-License-Identifier: MIT */
/* One range of the records, as the counter of `stats` keeps it: the log of what depends on the order, and what
 * went wrong. The part that stands at the beginning of the stream also has the state of all that was joined to
 * it. */
#ifndef STATS_PART_H
#define STATS_PART_H

#include <stdbool.h>
#include <stdint.h>
#include "stats/stats_log.h"
#include "stats/stats_sums.h"
#include "stats/stats_whole.h"

struct stats_settings;

enum { STATS_FAULT_SIZE = 256 };

struct stats_fault {
    uint64_t record;             /* its number, from 0 on */
    char text[STATS_FAULT_SIZE]; /* "": none */
};

struct stats_part {
    const struct stats_settings *settings;
    struct stats_log log;
    struct stats_range *range;   /* the coverage of its records; NULL: none yet, or it is counted when it is joined */
    struct stats_barcode_order barcodes;         /* of all that was counted into it or joined to it */
    struct mate_table *table;    /* for `whole`, shared by others; NULL: it has one of its own. Set after it is
                                  * opened */
    struct stats_whole *whole;   /* NULL: nothing was joined to it yet */
    uint64_t n_records;          /* of the log */
    uint64_t n_before;           /* records before those of the log */
    struct stats_fault fault;    /* ends the counting */
    struct stats_fault sorted_fault;     /* counts only if the records before are in order */
    size_t *pointers;            /* for each reference: the first region that may still be met; NULL: not asked for */
    struct stats_sequence *sequence;     /* with -r: the one of the last record; NULL: none yet */
};

/* NULL: out of memory. */
struct stats_part *stats_part_open(const struct stats_settings *settings);
void stats_part_close(struct stats_part *part);

/* Counts a record. -1: an error, kept in the part. */
int stats_part_add(struct stats_part *part, struct stats_sums *sums, const uint8_t *record);

/* Refuses the record that comes: it is counted, and the texts are the fault. Returns -1. */
int stats_part_refuse(struct stats_part *part, const char *text, const char *name, const char *after);

/* Makes a part that has some records of another one number them as that one does. Call it before each record, before
 * it is joined and before others are joined to it. */
void stats_part_follow(struct stats_part *part, const struct stats_part *other);

/* The first fault of all records that were counted into it or joined to it; NULL: none. */
const struct stats_fault *stats_part_fault(const struct stats_part *part);

/* Adds the range `right`, which follows and is empty afterwards. -1: out of memory. */
int stats_part_join(struct stats_part *left, struct stats_part *right);

/* Moves what its log has into `whole`, which it gets if it has none. -1: out of memory. */
int stats_part_settle(struct stats_part *part);

#endif
