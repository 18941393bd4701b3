/* SPDX-License-Identifier: MIT */
/* Filters or changes BAM records between file and arena, by tasks. It drops records that filter=EXPRESSION rejects, and
 * changes PG tags if the merged header gave a program another ID. A sort reads an input this way only if it needs one
 * of the two.
 *
 * A merge takes all records like this, chunk by chunk: remapped and with keys (record_slice). Others only look at the
 * records that pass, and none is kept. */
#ifndef PASSED_RECORDS_H
#define PASSED_RECORDS_H

#include "bam/bam_header.h"
#include "bam/record_remap.h"
#include "read/chunk_reader.h"

struct passed_records;
struct record_slice;
struct ref_regions;
struct sort_rule;

/* The requests of a merge for an input, beside the remap; all stays the caller's. */
struct merge_request {
    const struct sort_rule *rule;    /* as in struct bam_key_order */
    const int64_t *lengths;      /* of the references of the output: records that begin behind their ends are refused.
                                  * NULL: they are not */
    struct sort_rule *learns;    /* the same, where it is to learn from the first records of this input; else NULL */
    struct chunk_borrower *borrower; /* as in chunk_reader_options */
};

/* In place of that: the records that pass are looked at, checked and normalised, and not kept. */
struct look_request {
    /* A record of a chunk, where it lies. In the chunk's task, one after the other. NULL: nobody looks there. */
    void (*look)(void *arg, uint32_t chunk, const uint8_t *record, uint32_t size);
    /* look() has seen all records of the chunk, and none has a fault. In the chunk's task. Set where look() is. */
    void (*seen)(void *arg, uint32_t chunk);
    /* All records of the chunk were looked at, and so were those before. records: if look() is NULL, one after the
     * other; else empty. Main thread. -1: failed, and the error is recorded in the latch. */
    int (*looked)(void *arg, uint32_t chunk, const struct byte_buffer *records);
    void *arg;                   /* of all */
};

struct passed_records_options {
    struct chunk_input in;       /* the records as they are in the input */
    const char *filter;          /* an expression, which is copied; NULL: all records pass */
    const struct ref_regions *regions;   /* only records that overlap one pass; NULL: all do. The caller's */
    const struct merge_request *merge; /* NULL: the records need no keys */
    const struct look_request *looks; /* NULL: no task looks at them */
};

/* Takes over what the records need, which may be nothing, and the records behind the header from `header`. NULL: no
 * memory, and the error is recorded in the latch; free both all the same. */
struct passed_records *passed_records_open(const struct passed_records_options *options, struct record_remap *remap,
                                           struct bam_header *header);

/* Frees everything except the ring. Call it when all records are used. Tasks may still look at that: close it later. */
void passed_records_end(struct passed_records *records);

/* Call it after the parallel region, and after the source that it reads is closed. */
void passed_records_close(struct passed_records *records);

/* The records that pass; for a merge with keys. */
struct chunk_reader *passed_records_chunks(struct passed_records *records);

#endif
