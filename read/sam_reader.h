/* SPDX-License-Identifier: MIT */
/* SAM text as a stream of BAM records. Tasks find the lines and parse each (bam/sam_line.h). */
#ifndef SAM_READER_H
#define SAM_READER_H

#include <stdbool.h>
#include <htslib/sam.h>
#include "read/input_options.h"
#include "read/record_stream.h"

struct byte_window;
struct sam_reader;

/* Makes a header of its text, by htslib, if samtools 1.24 takes it (bam/header_text.h). options: as for
 * sam_reader_open(). It belongs to the caller. NULL: failed, and the error is recorded in the latch. */
sam_hdr_t *sam_reader_header(const uint8_t *text, size_t size, const struct input_options *options);

/* Reads the header, or passes over it where *header is not NULL: it was read before. *header is the caller's, to change
 * and to destroy, also after an error. If options->part is set, the header is taken from there, and the text is the
 * lines of the part. The text, plain, or packed in BGZF or gzip, stays the caller's, but only the reader may use it
 * until it is closed. Records that the filter of the options does not let pass are left out. NULL: failed, and the
 * error is recorded in the latch. */
struct sam_reader *sam_reader_open(struct byte_window *text, bool packed, const struct input_options *options,
                                   sam_hdr_t **header);

/* Call it after the parallel region, because late tasks still look at their chunk. */
void sam_reader_close(struct sam_reader *reader);

/* Frees everything except the rings. Call it when all records are read and used. Tasks may still look at these: close
 * it later. */
void sam_reader_end(struct sam_reader *reader);

/* The records, noted only (record_slice_note()). Errors name the number of the record and of its line. */
struct record_stream sam_reader_stream(struct sam_reader *reader);

#endif
