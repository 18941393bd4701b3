/* SPDX-License-Identifier: MIT */
/* Writes records through htslib: CRAM, FASTQ, FASTA, and SAM if tasks do not make it (record_sink_form()). */
#ifndef HTS_WRITER_H
#define HTS_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <htslib/sam.h>
#include "bam/bam_record.h"
#include "base/memory_shares.h"
#include "write/record_out.h"

struct hts_writer;
struct output_request;
struct engine;

/* Checks and prepares everything that does not need the header. As record_sink_open(); the request must live as long as
 * the writer. It uses these values of the rings: the threads, the room for htslib, and the slots, each of which is one
 * batch of records. NULL: failed, and the error is recorded in the latch. */
struct hts_writer *hts_writer_open(const struct output_request *request, const struct memory_rings *rings, int fd,
                                   const char *path, const struct engine *engine);

/* Writes the header, which must live as long as the writer. index: the file to write an index to; NULL: none. beyond:
 * see struct cram_settings_case. -1: failed, and the error is recorded in the latch. */
int hts_writer_header(struct hts_writer *writer, sam_hdr_t *header, const char *index, bool beyond);

/* Returns the changes and checks for records. Set them before the first put, except those that follow from the
 * header. */
struct record_out_options *hts_writer_how(struct hts_writer *writer);

/* Writes n checked records, in order. Tasks prepare batches of them, and the main thread gives these to htslib. Records
 * must stay unchanged until hts_writer_passed() is true for a mark taken after them. -1: failed, and the error is
 * recorded in the latch. */
int hts_writer_put(struct hts_writer *writer, const struct record_ref *records, size_t n);

/* These functions work as bgzf_sink_mark() and the functions after it in bgzf_omp.h. */
uint64_t hts_writer_mark(const struct hts_writer *writer);
bool hts_writer_passed(const struct hts_writer *writer, uint64_t mark);
bool hts_writer_will_pass(const struct hts_writer *writer, uint64_t mark);
bool hts_writer_help(struct hts_writer *writer);

/* Writes the rest, and the index. If the output is CRAM, checks that every record was written. -1: failed, and the
 * error is recorded in the latch. */
int hts_writer_finish(struct hts_writer *writer);
void hts_writer_close(struct hts_writer *writer);

/* Bytes of memory for n_batches batches. */
size_t hts_writer_batches_memory(uint32_t n_batches);

/* Sum of record_checksum() over the records put. */
uint64_t hts_writer_checksum(const struct hts_writer *writer);

#endif
