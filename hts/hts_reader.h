/* SPDX-License-Identifier: MIT */
/* Any input that htslib decodes, as a stream of records, which the main thread reads when it has nothing else to do. */
#ifndef HTS_READER_H
#define HTS_READER_H

#include <htslib/hfile.h>
#include <htslib/sam.h>
#include "read/input_options.h"
#include "read/record_stream.h"

struct cram_input;
struct hts_reader;
struct ref_regions;

/* Takes over file, even if it fails. options->path also lets htslib guess the format. cram knows how many records there
 * are; NULL: that is not known. *header becomes a copy of the header, for the caller to change and to destroy. NULL:
 * failed, and the error is recorded in the latch. */
struct hts_reader *hts_reader_open(hFILE *file, const struct input_options *options, struct cram_input *cram,
                                   sam_hdr_t **header);
void hts_reader_close(struct hts_reader *reader);

/* For a CRAM that was opened without threads, before its first record is read: starts as many threads as there is
 * memory for, at most n. -1: failed, and the error is recorded in the latch. */
int hts_reader_start_threads(struct hts_reader *reader, int n);

/* Only records that overlap these regions will be read, and maybe more. index: as in input_format_choose(). -1: failed,
 * and the error is recorded in the latch. */
int hts_reader_choose(struct hts_reader *reader, const struct ref_regions *regions, const char *index);

/* The file, at the end of its header. It stays the reader's. */
samFile *hts_reader_file(const struct hts_reader *reader);

/* What the references of a CRAM are compared with when its records were read; NULL: nothing. It stays the reader's. */
struct ref_sums *hts_reader_sums(const struct hts_reader *reader);

/* Call it when all records of a CRAM were read, by this reader or in its place, and each mapped one was seen by
 * hts_reader_sums(). -1: a reference is another than the header's, and the error is recorded in the latch. */
int hts_reader_check_sums(const struct hts_reader *reader);

/* Records in the latch why this record, counted from 1, cannot be read. Returns -1. */
int hts_reader_broken(const struct hts_reader *reader, uint64_t number);

/* Bytes of memory, about, that reading takes. */
size_t hts_reader_memory(const struct hts_reader *reader);

/* The records, until the reader is closed. */
struct record_stream hts_reader_stream(struct hts_reader *reader);

/* ---- also for others who take records from htslib ---- */

enum hts_fault { HTS_FINE, HTS_BROKEN, HTS_TOO_LONG, HTS_FAR, HTS_NO_MEMORY };

/* Appends the record, as BAM. far: as in input_options. */
enum hts_fault hts_reader_append(struct record_slice *slice, const bam1_t *record, bool far);

/* Records in the latch what is wrong with this record, counted from 1. Returns -1. */
int hts_reader_fault(const struct input_options *options, enum hts_fault fault, uint64_t number);

#endif
