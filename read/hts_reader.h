/* SPDX-License-Identifier: MIT */
/* Any input that htslib decodes, as a stream of raw BAM records. */
#ifndef HTS_READER_H
#define HTS_READER_H

#include <stdbool.h>
#include <sys/types.h>
#include <htslib/hfile.h>
#include <htslib/sam.h>
#include "plan/memory_plan.h"

struct cram_input;
struct latch;
struct hts_reader;

struct hts_reader_options {
    const char *path;            /* for messages, and for htslib to guess the format from */
    int n_threads;
    const char *reference;
    const hts_opt *format_options;
    struct htslib_room room;     /* memory that it may take */
    struct cram_input *cram;     /* knows how many records there are; NULL: nobody knows */
    bool far;                    /* records with positions beyond 32 bits (far_pos.h) are given; else refused */
    struct latch *latch;
};

/* Takes over file, even if it fails. NULL: failed, and the error is recorded in the latch. */
struct hts_reader *hts_reader_open(hFILE *file, const struct hts_reader_options *options);
void hts_reader_close(struct hts_reader *reader);

/* The header, which belongs to the caller from then on; NULL the second time. The reader keeps a copy,
 * so the caller may change the header. */
sam_hdr_t *hts_reader_header(struct hts_reader *reader);

/* Bytes of memory, about, that reading takes. */
size_t hts_reader_memory(const struct hts_reader *reader);

/* Reads up to n bytes of the stream of records, as read(). -1: failed, and the
 * error is recorded in the latch. */
ssize_t hts_reader_read(struct hts_reader *reader, void *buffer, size_t n);

#endif
