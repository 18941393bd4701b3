/* SPDX-License-Identifier: MIT */
/* SAM text as a stream of BAM records. Tasks find the lines and parse each (bam/sam_line.h). */
#ifndef SAM_READER_H
#define SAM_READER_H

#include <stdbool.h>
#include <htslib/sam.h>
#include "base/record_stream.h"
#include "read/input_options.h"

struct byte_window;
struct sam_reader;

/* Makes a header from its text, with htslib, if samtools 1.24 accepts the text (bam/header_text.h). options: as for
 * sam_reader_open(). The caller owns the header. NULL: failed, and the error is recorded in the latch. */
sam_hdr_t *sam_reader_header(const uint8_t *text, size_t size, const struct input_options *options);

/* Reads the header. If *header is not NULL, the header was read before and is skipped. The caller owns *header, and may
 * change it; the caller destroys it, even after an error. If options->part is set, the header is taken from the part,
 * and the text is the lines of the part. The text is plain, or packed in BGZF or gzip. It stays the caller's, but only
 * the reader may use it until the reader is closed. Records that do not pass the filter of the options are left out.
 * NULL: failed, and the error is recorded in the latch. */
struct sam_reader *sam_reader_open(struct byte_window *text, bool packed, const struct input_options *options,
                                   sam_hdr_t **header);

/* Call it after the parallel region, because late tasks still look at their chunk. */
void sam_reader_close(struct sam_reader *reader);

/* Frees everything except the rings, which tasks may still look at: close it later. Call it when all records are read
 * and used. */
void sam_reader_end(struct sam_reader *reader);

/* Returns the bytes that a reader takes for n_chunks chunks, besides their buffers. */
size_t sam_reader_memory(uint32_t n_chunks);

/* Returns the stream of the records, which are only noted (record_slice_note()). Errors name the number of the record
 * and of its line. */
struct record_stream sam_reader_stream(struct sam_reader *reader);

#endif
