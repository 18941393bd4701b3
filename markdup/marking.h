/* SPDX-License-Identifier: MIT */
/* Marks and counts duplicates in a stream of sorted records (markdup/marked_flow.h): those of a file
 * (markdup/marked.h), or those that `sormadup` has sorted. */
#ifndef MARKING_H
#define MARKING_H

#include <htslib/sam.h>
#include "base/byte_buffer.h"
#include "base/name_table.h"
#include "base/record_stream.h"
#include "markdup/dup_key.h"
#include "markdup/dup_others.h"
#include "markdup/dup_warnings.h"
#include "markdup/marked_flow.h"

struct driver;
struct markdup_opts;

struct marking_options {
    const struct markdup_opts *opts;
    const struct record_stream *source;  /* it stays the caller's, and is set when the records are taken */
    sam_hdr_t *sam;              /* the header, with the read groups */
    bool is_broken;              /* as in bam_header */
    size_t slice_size;           /* usual bytes of records in a slice */
    size_t left;                 /* bytes for waiting records, beyond the minimum that works */
    struct driver *d;            /* the records go to its output, which is open */
};

/* Zero-initialised: not open. */
struct marking {
    const struct markdup_opts *opts;
    struct driver *d;
    struct dup_rule rule;
    struct name_table groups;    /* read groups, if they are distinguished */
    regex_t barcode;             /* rule.barcode_name, if that is not NULL */
    struct dup_coords_rule coords_rule;   /* how coordinates are read, if they are (opts->distance) */
    bool reads_coords;            /* coords_rule is open */
    struct dup_others others;
    struct dup_warnings warnings;
    struct marked_store *store;
    const struct record_stream *source;
    struct marked_flow *flow;
    struct byte_buffer statistics;   /* text of the statistics, if requested; made at the end of the stream */
};

/* Total bytes for waiting records. */
size_t marking_room(int n_threads, size_t slice_size, size_t left);

/* Does not keep `options`. -1: the error is recorded in the latch; call marking_close() anyway. */
int marking_open(struct marking *marking, const struct marking_options *options);

/* The marked records, as a stream. Its end checks that no record was lost or changed between the source and the sink,
 * and makes the statistics, which marking_close() writes. */
struct list_stream marking_stream(struct marking *marking);

/* Number of records read. */
uint64_t marking_count(const struct marking *marking);

/* Writes the statistics, unless the latch holds an error; it may get one here. Call it after the parallel region, when
 * the output is in place. */
void marking_close(struct marking *marking);

#endif
