/* SPDX-License-Identifier: MIT */
/* SAM text as a stream of raw BAM records. Tasks find the lines and have htslib parse each. */
#ifndef SAM_READER_H
#define SAM_READER_H

#include <stddef.h>
#include <htslib/sam.h>
#include "read/byte_source.h"

struct sam_reader;

/* Reads the header from text, which is plain or BGZF, and of which the reader is the only user until it is
 * closed. NULL: told to the latch. */
struct sam_reader *sam_reader_open(struct byte_source *text, const struct byte_source_options *options);

/* Behind the parallel region: tasks that came too late still look at their chunk. */
void sam_reader_close(struct sam_reader *reader);

/* The header, the caller's from then on; NULL the second time. The reader keeps
 * a copy, so the caller may change his. */
sam_hdr_t *sam_reader_header(struct sam_reader *reader);

/* Bytes of memory that reading takes. A line longer than a chunk takes as much again. */
size_t sam_reader_memory(const struct sam_reader *reader);

/* The next records, whole ones, as byte_source_borrow(). -1: told to the latch, with the number of the record and
 * that of its line. */
int sam_reader_lend(struct sam_reader *reader, struct byte_loan *loan, byte_source_help_fn *help, void *arg);

#endif
