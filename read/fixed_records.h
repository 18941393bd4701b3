/* SPDX-License-Identifier: MIT */
/* The records of an input as `fixmate` writes them. Chunks are cut where the name changes, so a task has whole
 * templates (fixmate/fixmate.h):
 *
 *   chunk 4  .. a a | b b | c             chunk 5  c c | d d | e e
 *                         -> carry -> its head: c c c
 *
 * The task that inflates a block finds the borders in it, the main thread looks where blocks meet.
 * A template that is longer than a chunk goes on in the carry, until another name comes; then all of it is one head.
 * It is there three times while it is fixed: as it was, the primary records that are normalised, and as it becomes. */
#ifndef FIXED_RECORDS_H
#define FIXED_RECORDS_H

#include "bam/bam_header.h"
#include "fixmate/fixmate.h"
#include "base/byte_buffer.h"
#include "read/chunk_reader.h"

struct fixed_records;

/* Takes numbers for the names of n mates whose other half is not in their template, in the order of the input. The
 * lowest bit tells first mates from second ones; none is 0. Main thread. -1: the error is recorded in the latch. */
typedef int fixed_orphans_fn(void *arg, const uint64_t *orphans, size_t n);

/* How records are fixed: as if all inputs were one. */
struct fix_request {
    struct fixmate_rules rules;
    fixed_orphans_fn *orphans;   /* NULL: nobody asks for them */
    void *orphans_arg;
    struct byte_buffer open;     /* all records of the template in which an input ended; it may go on in the next one.
                                  * The owner of the request frees it */
};

struct fixed_records_options {
    struct chunk_input in;       /* the records as they are in the input */
    struct fix_request *request; /* stays the caller's */
    const int64_t *lengths;      /* of the references: records that begin behind their ends are refused. NULL: they are
                                  * not */
    bool is_last;                /* no input goes on with the template in which this one ends */
    bool collated;               /* records come in another order than in the file */
};

/* Takes over the records behind the header from `header`. NULL: out of memory, and the error is recorded in the
 * latch. */
struct fixed_records *fixed_records_open(const struct fixed_records_options *options, struct bam_header *header);

/* Frees everything except the ring. Call it when all records are used. Tasks may still look at that: close it later. */
void fixed_records_end(struct fixed_records *records);

/* Call it after the parallel region, and after the source that it reads is closed. */
void fixed_records_close(struct fixed_records *records);

/* The records, with keys. */
struct chunk_reader *fixed_records_chunks(struct fixed_records *records);

#endif
