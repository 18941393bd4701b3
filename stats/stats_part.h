/* SPDX-License-Identifier: MIT */
/* One range of the records, as the counter of `stats` keeps it: the log of everything that depends on the order, and
 * the faults. The part at the beginning of the stream also has the state of all parts that were joined to it. */
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
    uint64_t record;             /* number of the record, from 0 */
    char text[STATS_FAULT_SIZE]; /* "" if there is no fault */
};

struct stats_part {
    const struct stats_settings *settings;
    struct stats_log log;
    struct stats_cover cover;    /* the coverage of its records */
    struct stats_barcode_order barcodes;         /* order of all records that were counted into it or joined to it */
    struct mate_table *table;    /* for `whole`, shared with other parts; NULL: `whole` has one of its own. Set after
                                  * the part is opened */
    struct stats_whole *whole;   /* NULL: nothing was joined to it yet */
    uint64_t n_records;          /* records in the log */
    uint64_t n_before;           /* records before those of the log */
    struct stats_fault fault;    /* ends the counting */
    struct stats_fault sorted_fault;     /* counts only if the records before are in order */
    size_t *pointers;            /* for each reference: the first region that may still be met; NULL: not needed */
    struct stats_sequence *sequence;     /* with -r: the sequence of the last record; NULL: none yet */
};

/* Returns NULL if out of memory. */
struct stats_part *stats_part_open(const struct stats_settings *settings);
void stats_part_close(struct stats_part *part);

/* Counts a record. Returns -1 on an error, which is kept in the part. */
int stats_part_add(struct stats_part *part, struct stats_sums *sums, const uint8_t *record);

/* Refuses the next record: counts it and makes the fault from the texts. Returns -1. */
int stats_part_refuse(struct stats_part *part, const char *text, const char *name, const char *after);

/* Makes `part`, which has some of the records of `other`, number them as `other` does. Call it before each record,
 * before `part` is joined, and before others are joined to `part`. */
void stats_part_follow(struct stats_part *part, const struct stats_part *other);

/* Returns the first fault of all records that were counted into the part or joined to it, or NULL if there is none. */
const struct stats_fault *stats_part_fault(const struct stats_part *part);

/* Joins the coverage of `right`, which follows, to that of `left`, so that less is left to do when both are joined. A
 * part that has the coverage of parts after it stands for all of them in later calls. last: the last of the parts that
 * `left` stands for; `left` itself if there are no others. All parts are still joined one by one. Returns false if this
 * is not possible. */
bool stats_part_pair(struct stats_part *left, const struct stats_part *last, struct stats_part *right);

/* Adds the range `right`, which follows `left` and is empty afterwards. Returns -1 if out of memory. */
int stats_part_join(struct stats_part *left, struct stats_part *right);

/* Moves the content of the log into `whole`, which is made if there is none. Returns -1 if out of memory. */
int stats_part_settle(struct stats_part *part);

#endif
