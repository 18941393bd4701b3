/* SPDX-License-Identifier: MIT */
/* Filters or changes BAM records between the file and the arena, in tasks. It drops records that filter=EXPRESSION
 * rejects, and changes PG tags if the merged header gave a program another ID. A sort reads an input in this way only
 * if one of the two is needed.
 *
 * A merge takes all records in this way, chunk by chunk: remapped and with keys (record_slice). Other commands only
 * look at the records that pass, and no record is kept. */
#ifndef PASSED_RECORDS_H
#define PASSED_RECORDS_H

#include "bam/bam_header.h"
#include "bam/record_remap.h"
#include "read/chunk_reader.h"

struct passed_records;
struct ref_regions;
struct sort_rule;

/* The request of a merge for an input, besides the remap. The caller keeps everything. */
struct merge_request {
    const struct sort_rule *rule;    /* as in struct bam_key_order */
    const int64_t *lengths;      /* lengths of the references of the output: records that begin after the end of their
                                  * reference are refused. NULL: none is refused */
    struct sort_rule *learns;    /* equal to `rule` if the rule learns from the first records of this input; otherwise
                                  * NULL */
    struct chunk_borrower *borrower; /* as in chunk_reader_options */
};

/* An alternative to a merge_request: the records that pass are looked at, checked and normalised, but not kept. */
struct look_request {
    /* Looks at a record of a chunk, in place. Called in the chunk's task, one record after the other. thread: the
     * number of the task's thread. NULL: the task looks at no record. */
    void (*look)(void *arg, int thread, uint32_t chunk, const uint8_t *record, uint32_t size);
    /* look() has seen all records of the chunk, and none has a fault. Called in the chunk's task. Set if look() is
     * set. */
    void (*seen)(void *arg, uint32_t chunk);
    /* All records of the chunk, and of the chunks before it, were looked at. records: all records, one after the other,
     * if look() is NULL; else empty. Main thread. -1: failed, and the error is recorded in the latch. */
    int (*looked)(void *arg, uint32_t chunk, const struct byte_buffer *records);
    void *arg;                   /* for all of these functions */
};

struct passed_records_options {
    struct chunk_input in;       /* the records as they are in the input */
    const char *filter;          /* a filter expression, which is copied; NULL: all records pass */
    const struct ref_regions *regions;   /* only records that overlap one of these regions pass; NULL: all records pass.
                                  * The caller's */
    const struct merge_request *merge; /* NULL: the records need no keys */
    const struct look_request *looks; /* NULL: no task looks at them */
};

/* Returns the bytes that it takes besides the chunks' memory, for this many chunks and a source of n_slots. */
size_t passed_records_memory(uint32_t n_chunks, uint32_t n_slots);

/* Takes over the remap, which may be empty, and from `header` the records after the header. NULL: out of memory, and
 * the error is recorded in the latch; free both anyway. */
struct passed_records *passed_records_open(const struct passed_records_options *options, struct record_remap *remap,
                                           struct bam_header *header);

/* Frees everything except the ring, which tasks may still look at: close it later. Call it when all records are
 * used. */
void passed_records_end(struct passed_records *records);

/* Call it after the parallel region, and after the source that it reads is closed. */
void passed_records_close(struct passed_records *records);

/* Returns the chunks of the records that pass. For a merge, the records have keys. */
struct chunk_reader *passed_records_chunks(struct passed_records *records);

#endif
