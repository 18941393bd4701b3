/* SPDX-License-Identifier: MIT */
/* The destination of sorted records: tasks write BAM and SAM, htslib all other formats. */
#ifndef RECORD_SINK_H
#define RECORD_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <htslib/sam.h>
#include "bam/bam_record.h"
#include "base/sink_form.h"
#include "write/copied_blocks.h"
#include "write/record_out.h"

struct bam_index;
struct engine;
struct memory_rings;
struct output_request;
struct progress;
struct record_list;
struct record_sink;

/* Returns how this output is made. Only this function decides it. */
enum sink_form record_sink_form(const struct output_request *request);

/* Returns the bytes that a sink takes. piece_size: see bgzf_sink_piece_size(). */
size_t record_sink_memory(enum sink_form form, int n_threads, uint32_t n_slots, int level, size_t piece_size);

/* Allocates all memory that the sink needs. The caller owns fd; path is for messages; rings has the number of threads,
 * the most blocks in use, and the memory for htslib. NULL: failed, and the error is recorded in the latch. */
struct record_sink *record_sink_open(const struct output_request *request, const struct memory_rings *rings, int fd,
                                     const char *path, const struct engine *engine);
void record_sink_close(struct record_sink *sink);

/* For BAM: from the first record on, blocks that are written are added to the index (bam_index_add()), which stays the
 * caller's. -1: out of memory, also if index is NULL, and the error is recorded in the latch. */
int record_sink_set_index(struct record_sink *sink, struct bam_index *index);

/* Writes the header. Call it before the first record. sam must live as long as the sink. index: for formats that htslib
 * writes, the file to write the index to; NULL: none. beyond: a later record begins after the end of its reference,
 * which matters for CRAM. -1: failed, and the error is recorded in the latch. */
int record_sink_header(struct record_sink *sink, sam_hdr_t *sam, const char *index, bool beyond);

/* Returns the changes and checks for records. Set finish, samtools and verify before the first record. The sink takes
 * ownership of verify, which must be made for blocks if tasks make them (BAM, SAM.gz); samtools must outlive the
 * sink. */
struct record_out_options *record_sink_how(const struct record_sink *sink);

/* From now on records need not be in order, even with --verify. */
void record_sink_forget_order(struct record_sink *sink);

/* Sets the progress that is shown while the sink writes. */
void record_sink_set_progress(struct record_sink *sink, struct progress *progress);

/* Writes checked records. They, and the list too if it has `fit`, must stay unchanged until record_sink_passed(). -1:
 * stop. */
int record_sink_put(struct record_sink *sink, const struct record_list *list);

/* See bgzf_sink_mark() and so on (bgzf_omp.h). sink NULL: merged records go to no sink and are copied, so all have
 * passed. */
uint64_t record_sink_mark(const struct record_sink *sink);
bool record_sink_passed(const struct record_sink *sink, uint64_t mark);
bool record_sink_passed_of(const void *sink, uint64_t mark);     /* for sliced_input_free() */
bool record_sink_will_pass(const struct record_sink *sink, uint64_t mark);
void record_sink_make_task(struct record_sink *sink);
int record_sink_help(struct record_sink *sink);

/* Writes the rest, and the index of htslib. -1: failed, and the error is recorded in the latch. */
int record_sink_finish(struct record_sink *sink);

/* Number of records written, and the sum of record_checksum() over those encoded. Call them after finish. */
uint64_t record_sink_count(const struct record_sink *sink);
uint64_t record_sink_checksum(const struct record_sink *sink);

/* Counts of the blocks copied from an input. Call it after finish. */
struct copied_count record_sink_copied(const struct record_sink *sink);

#endif
