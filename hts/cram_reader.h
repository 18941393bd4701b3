/* SPDX-License-Identifier: MIT */
/* CRAM in a regular file as a stream of records. Tasks decode its containers in parallel, each with its own file of
 * htslib. */
#ifndef CRAM_READER_H
#define CRAM_READER_H

#include <stdbool.h>
#include <htslib/sam.h>
#include "base/memory_shares.h"
#include "base/record_stream.h"
#include "read/input_options.h"

struct cram_input;
struct cram_reader;
struct hts_reader;
struct input_file;

/* Returns the largest number of bytes that reading a CRAM file takes, by this reader or by threads of htslib. header:
 * bytes of text. */
size_t cram_reader_memory_most(const struct htslib_room *room, size_t header, int n_threads);

/* Returns whether the file may be read in this way, as far as this is known before it is opened. format: as detected.
 * cram: counts the records of the file; may be NULL. */
bool cram_reader_may(const struct input_file *file, const struct input_options *options, const htsFormat *format,
                     const struct cram_input *cram);

/* `first` has read the header; it has no threads yet, and is not used while there is a reader. All pointers stay the
 * caller's. *reader becomes NULL if `first` should read the records itself: if there is little memory, if few files may
 * be open, if /proc is missing, or if htslib may have to look for a reference while it decodes. -1: failed, and the
 * error is recorded in the latch. */
int cram_reader_open(struct cram_reader **reader, const struct input_file *file, const struct input_options *options,
                     struct cram_input *cram, struct hts_reader *first, sam_hdr_t *header);

/* Call it after the parallel region, because late tasks still look at their slot. */
void cram_reader_close(struct cram_reader *reader);

/* Returns the approximate bytes of memory that the reader takes, besides those of `first`. 0 for NULL. */
size_t cram_reader_memory(const struct cram_reader *reader);

/* Returns the stream of the records, with one slice for each container; valid until the reader is closed. */
struct record_stream cram_reader_stream(struct cram_reader *reader);

#endif
