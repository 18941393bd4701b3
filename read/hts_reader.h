/* SPDX-License-Identifier: MIT */
/* Any input that htslib decodes, as a stream of raw BAM records. */
#ifndef HTS_READER_H
#define HTS_READER_H

#include <sys/types.h>
#include <htslib/hfile.h>
#include <htslib/sam.h>
#include "read/input_options.h"

struct cram_input;
struct hts_reader;

/* Takes over file, even if it fails. options->path also lets htslib guess the format. cram knows how many records there
 * are; NULL: that is not known. *header becomes a copy of the header, for the caller to change and to destroy. NULL:
 * failed, and the error is recorded in the latch. */
struct hts_reader *hts_reader_open(hFILE *file, const struct input_options *options, struct cram_input *cram,
                                   sam_hdr_t **header);
void hts_reader_close(struct hts_reader *reader);

/* Bytes of memory, about, that reading takes. */
size_t hts_reader_memory(const struct hts_reader *reader);

/* Reads up to n bytes of the stream of records, as read(). -1: failed, and the error is recorded in the latch. */
ssize_t hts_reader_read(struct hts_reader *reader, void *buffer, size_t n);

#endif
