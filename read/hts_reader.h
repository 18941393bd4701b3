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
    const char *path;            /* for messages, and for htslib to guess from */
    int n_threads;
    const char *reference;
    const hts_opt *format_options;
    struct htslib_room room;     /* memory for it */
    struct cram_input *cram;     /* what tells how many records there are; NULL: nothing */
    _Atomic bool *far;           /* set before a record with positions beyond 32 bits (far_pos.h) is
                                  * given; NULL: such records are refused */
    struct latch *latch;
};

/* Takes over file, also when it fails. NULL: told to the latch. */
struct hts_reader *hts_reader_open(hFILE *file, const struct hts_reader_options *options);
void hts_reader_close(struct hts_reader *reader);

/* The header, the caller's from then on; NULL the second time. The reader keeps
 * a copy, so the caller may change his. */
sam_hdr_t *hts_reader_header(struct hts_reader *reader);

/* Bytes of memory that reading takes, about. */
size_t hts_reader_memory(const struct hts_reader *reader);

/* Up to n bytes of the stream of records, as read(). -1: told to the latch. */
ssize_t hts_reader_read(struct hts_reader *reader, void *buffer, size_t n);

#endif
