/* SPDX-License-Identifier: MIT */
/* Any input that htslib decodes, as a stream of records. The main thread reads them when it has nothing else to do. */
#ifndef HTS_READER_H
#define HTS_READER_H

#include <htslib/hfile.h>
#include <htslib/sam.h>
#include "base/record_stream.h"
#include "read/input_options.h"

struct cram_input;
struct hts_reader;
struct ref_regions;

/* Takes over `file`, even on failure. htslib also guesses the format from options->path. n_threads: the maximum number
 * of threads for a CRAM. cram: counts the records of the file; NULL: their number is not known. *header becomes a copy
 * of the header, which the caller may change, and destroys. NULL: failed, and the error is recorded in the latch. */
struct hts_reader *hts_reader_open(hFILE *file, const struct input_options *options, int n_threads,
                                   struct cram_input *cram, sam_hdr_t **header);
void hts_reader_close(struct hts_reader *reader);

/* Starts as many threads as there is memory for, at most n. Call it for a CRAM that was opened without threads, before
 * its first record is read. -1: failed, and the error is recorded in the latch. */
int hts_reader_start_threads(struct hts_reader *reader, int n);

/* Restricts reading to the records that overlap these regions, and maybe more. index: as in input_format_choose(). -1:
 * failed, and the error is recorded in the latch. */
int hts_reader_choose(struct hts_reader *reader, const struct ref_regions *regions, const char *index);

/* Returns the file, positioned after its header. It stays the reader's. */
samFile *hts_reader_file(const struct hts_reader *reader);

/* Returns the checksums that the references of a CRAM are compared with after its records were read; NULL: there are
 * none. They stay the reader's. */
struct ref_sums *hts_reader_sums(const struct hts_reader *reader);

/* Call it when all records of a CRAM were read, by this reader or by another instead of it, and hts_reader_sums() has
 * seen each mapped record. -1: a reference differs from the header's, and the error is recorded in the latch. */
int hts_reader_check_sums(const struct hts_reader *reader);

/* Records in the latch why this record, counted from 1, cannot be read. Returns -1. */
int hts_reader_broken(const struct hts_reader *reader, uint64_t number);

/* Returns the approximate bytes of memory that reading takes. */
size_t hts_reader_memory(const struct hts_reader *reader);

/* Returns the stream of the records; valid until the reader is closed. */
struct record_stream hts_reader_stream(struct hts_reader *reader);

/* ---- for other modules that take records from htslib ---- */

enum hts_fault { HTS_FINE, HTS_BROKEN, HTS_TOO_LONG, HTS_FAR, HTS_NO_MEMORY };

/* Appends the record as BAM. far: as in input_options. */
enum hts_fault hts_reader_append(struct record_slice *slice, const bam1_t *record, bool far);

/* Records in the latch the fault of record `number`, counted from 1. Returns -1. */
int hts_reader_fault(const struct input_options *options, enum hts_fault fault, uint64_t number);

#endif
