/* SPDX-License-Identifier: MIT */
/* The records of an input as `fixmate` writes them. Chunks are cut where the name changes, so a task has complete
 * templates (fixmate/fixmate.h):
 *
 *   chunk 4  .. a a | b b | c             chunk 5  c c | d d | e e
 *                         -> carry -> its head: c c c
 *
 * The task that inflates a block finds the borders inside the block. The main thread checks where two blocks meet. A
 * template that is longer than a chunk continues in the carry until another name comes; then the complete template is
 * one head. While a template is fixed, it is in memory three times: as it was, as normalised primary records, and in
 * its new form. */
#ifndef FIXED_RECORDS_H
#define FIXED_RECORDS_H

#include "bam/bam_header.h"
#include "fixmate/fixmate.h"
#include "base/byte_buffer.h"
#include "read/chunk_reader.h"

struct fixed_records;

/* Takes numbers for the names of n mates whose other half is not in their template, in the order of the input. The
 * lowest bit distinguishes first mates from second mates; no number is 0. Main thread. -1: the error is recorded in the
 * latch. */
typedef int fixed_orphans_fn(void *arg, const uint64_t *orphans, size_t n);

/* The rules by which records are fixed, as if all inputs were one. */
struct fix_request {
    struct fixmate_rules rules;
    fixed_orphans_fn *orphans;   /* NULL if not needed */
    void *orphans_arg;
    struct byte_buffer open;     /* all records of the template in which an input ended; the template may continue in
                                  * the next input. The owner of the request frees it */
};

struct fixed_records_options {
    struct chunk_input in;       /* the records as they are in the input */
    struct fix_request *request; /* stays the caller's */
    const int64_t *lengths;      /* lengths of the references: records that begin after the end of their reference are
                                  * refused. NULL: none is refused */
    bool is_last;                /* no other input continues the template in which this one ends */
};

/* Takes over, from `header`, the records after the header. NULL: out of memory, and the error is recorded in the
 * latch. */
struct fixed_records *fixed_records_open(const struct fixed_records_options *options, struct bam_header *header);

/* Frees everything except the ring, which tasks may still look at: close it later. Call it when all records are
 * used. */
void fixed_records_end(struct fixed_records *records);

/* Call it after the parallel region, and after the source that it reads is closed. */
void fixed_records_close(struct fixed_records *records);

/* Returns the stream of the records, with keys. */
struct record_stream fixed_records_stream(struct fixed_records *records);

#endif
