/* SPDX-License-Identifier: MIT */
/* Changes and checks that records get on their way out, and the way of a record through htslib: finished, added to
 * the checksum, checked, and converted to a bam1_t. */
#ifndef RECORD_OUT_H
#define RECORD_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <htslib/sam.h>
#include "bam/bam_record.h"
#include "base/byte_buffer.h"

struct counts;
struct latch;
struct ref_sums;
struct samtools_checksum;
struct sink_verify;

/* The advice for records that no program could read back. */
#define RECORD_OUT_REMEDY "Fix the record, or leave it out of the input"

/* Used by one thread at a time. Zeroed: ready for the first record. */
struct record_out {
    bam1_t b;
    struct byte_buffer copy;     /* of the record, to be finished */
    uint32_t slot;               /* of the block that it is for; its owner sets it where records are counted */
};

/* Its owner sets what is NULL at first before the first record. */
struct record_out_options {
    const char *path;            /* for messages */
    enum htsExactFormat format;
    const sam_hdr_t *header;
    sam_hdr_t *groups;           /* the same, parsed, if RG tags must name one of its @RG lines; else NULL */
    struct ref_sums *sums;       /* with which references of mapped reads are compared; NULL: they are not */
    bool needs_seq, needs_quals; /* CRAM would give mapped reads without them some */
    record_finish_fn *finish;    /* called for a copy of each record, or of its first segment, in any thread. NULL:
                                  * none is */
    struct samtools_checksum *samtools;   /* each record is added; NULL: none */
    struct counts *counts;       /* each record is counted, by the slots of blocks, which are joined in order. NULL:
                                  * none is */
    struct sink_verify *verify;  /* looks at blocks, for whoever makes them; NULL: none does */
    struct latch *latch;
};

/* Frees the memory of the record and its copy. */
void record_out_close(struct record_out *out);

/* Shrinks the buffers of the record and its copy to `kept` bytes each. */
void record_out_trim(struct record_out *out, size_t kept);

/* Makes out->b of the record, and adds the checksum of the finished record to *checksum. -1: it cannot be written in
 * this format, or has changed in memory, or there is no memory; the error is recorded in the latch. */
int record_out_take(struct record_out *out, const struct record_out_options *how, const uint8_t *record, size_t size,
                    uint64_t *checksum);

#endif
