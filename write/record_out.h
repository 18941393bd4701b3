/* SPDX-License-Identifier: MIT */
/* Changes and checks of records before they are written, and the path of a record through htslib: it is finished, added
 * to the checksum, checked, and converted to a bam1_t. */
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

/* Advice for records that no program could read back. */
#define RECORD_OUT_REMEDY "Fix the record, or leave it out of the input"

/* Used by one thread at a time. Zero-initialised: ready for the first record. */
struct record_out {
    bam1_t b;
    struct byte_buffer copy;     /* copy of the record, to be finished */
    uint32_t slot;               /* slot of its block; the owner sets it if records are counted */
};

/* The owner sets the fields that are NULL at first before the first record. */
struct record_out_options {
    const char *path;            /* for messages */
    enum htsExactFormat format;
    const sam_hdr_t *header;
    sam_hdr_t *groups;           /* the same header, parsed, if RG tags must name one of its @RG lines; otherwise
                                  * NULL */
    struct ref_sums *sums;       /* the references of mapped reads are compared with it; NULL: they are not */
    bool needs_seq, needs_quals; /* CRAM would add SEQ or qualities to mapped reads without them */
    record_finish_fn *finish;    /* called for a copy of each record, or of its first segment, on any thread. NULL: not
                                  * called */
    struct samtools_checksum *samtools;   /* each record is added; NULL: none */
    struct counts *counts;       /* counts each record, by slots of blocks, which are joined in order. NULL: none */
    struct sink_verify *verify;  /* checks the blocks of their maker; NULL: none */
    struct latch *latch;
};

/* Frees the memory of the record and its copy. */
void record_out_close(struct record_out *out);

/* Shrinks the buffers of the record and its copy to `kept` bytes each. */
void record_out_trim(struct record_out *out, size_t kept);

/* Makes out->b from the record, and adds the checksum of the finished record to *checksum. -1: the record cannot be
 * written in this format, or has changed in memory, or memory ran out; the error is recorded in the latch. */
int record_out_take(struct record_out *out, const struct record_out_options *how, const uint8_t *record, size_t size,
                    uint64_t *checksum);

#endif
