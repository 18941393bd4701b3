/* SPDX-License-Identifier: MIT */
/* The first half of `markdup`: an input in coordinate order whose duplicates are marked, as a stream of records in the
 * order of the input (plan/marked_flow.h). write/written.h is the other half. */
#ifndef MARKED_H
#define MARKED_H

#include "base/byte_buffer.h"
#include "base/latch.h"
#include "base/memory_shares.h"
#include "base/name_table.h"
#include "base/progress.h"
#include "duplicates/dup_key.h"
#include "duplicates/dup_others.h"
#include "duplicates/dup_warnings.h"
#include "plan/marked_flow.h"
#include "read/passed_records.h"
#include "read/sort_input.h"

struct markdup_opts;
struct marked_store;
struct record_list;
struct stats;
struct written;

struct marked {
    const struct markdup_opts *opts;
    struct latch *latch;         /* the caller's; this and the next two serve both halves */
    struct stats *stats;
    struct progress progress;
    struct written *to;          /* the other half ... */
    struct record_sink *sink;    /* ... and its sink */
    struct memory_rings rings;
    size_t room;                 /* bytes for records that wait */
    struct sort_inputs in;       /* one; none if the records come from what is before it */
    sam_hdr_t *sam;              /* the header */
    struct merge_wish wish;
    int64_t *lengths;            /* of the references; NULL: nobody asks for them */
    struct dup_rule rule;
    struct name_table groups;    /* read groups, if they are to be told apart */
    regex_t barcode;             /* rule.barcode_name, if it is not NULL */
    struct dup_spots spots;      /* how coordinates are read, if they are (opts->distance) */
    bool reads_spots;            /* they are open */
    struct dup_others others;
    struct dup_warnings warnings;
    struct marked_store *store;
    struct marked_flow *flow;
    struct byte_buffer statistics;   /* their text, if they are wanted; from marked_end() on */
};

/* Where the records come from, if not from an input. */
struct marked_before {
    struct marked_source source;
    sam_hdr_t *sam;
    const struct memory_rings *rings;
    size_t slice_size;           /* bytes of records of a slice, mostly */
    size_t room;                 /* as in marked_flow_options, or more if that is less than works */
    struct stats *stats;
};

/* Opens the input alone, for a forecast. `marked` is zero, but for the latch. -1: the error is recorded in the latch.
 * Either way, marked_look_end() closes it, and gives the memory back. */
int marked_look(struct marked *marked, const struct markdup_opts *opts);
void marked_look_end(struct marked *marked);

/* How memory is divided before any file is opened. Call it once: see sort_limits_memory(). */
struct memory_rings marked_rings(const struct sort_opts *opts);

/* Bytes for records that wait, with this plan. */
size_t marked_room(const struct memory_plan *plan);

/* Opens input and output. Both halves are zero, but for the latch. -1: the error is recorded in the latch; close it all
 * the same. */
int marked_open(struct marked *marked, const struct markdup_opts *opts, struct written *to);

/* The same in the middle of a chain: the output is open and its header is put, or will be. `before` may go. Close it by
 * marked_close(), and never call marked_begin(), marked_next() and marked_finish() of it. */
int marked_open_behind(struct marked *marked, const struct markdup_opts *opts, struct written *to,
                       const struct marked_before *before);

/* Call it behind the parallel region, when the output is in place: it writes the statistics. */
void marked_close(struct marked *marked);

/* Begins to read. Call it on the main thread of the team. -1: as above. */
int marked_begin(struct marked *marked);

/* The next records: see marked_flow_next(). */
int marked_next(struct marked *marked, struct record_list *list);

/* All records are in the sink: finishes it, compares what went through it with what was read, and makes the statistics,
 * which are written when the output is in place. -1: they differ, or it failed; the error is recorded in the latch. */
int marked_end(struct marked *marked);

/* How many records were read. */
uint64_t marked_count(const struct marked *marked);

/* Gives the output its name, unless the latch holds an error; it may get one here. Closes both halves, and stops the
 * stats, which stay. Call it behind the parallel region. */
void marked_finish(struct marked *marked);

#endif
