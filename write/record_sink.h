/* SPDX-License-Identifier: MIT */
/* Where sorted records go: BAM and SAM to tasks, all else to htslib. */
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
struct latch;
struct memory_rings;
struct output_request;
struct progress;
struct record_list;
struct record_sink;
struct clocks;

/* Returns how this output is made. Only this function decides it. */
enum sink_form record_sink_form(const struct output_request *request);

/* Allocates all that the sink needs. fd stays the caller's; path is for messages; rings says how many threads there
 * are, how many blocks are under way at most, and what htslib may take. NULL: failed, and the error is recorded in the
 * latch. */
struct record_sink *record_sink_open(const struct output_request *request, const struct memory_rings *rings, int fd,
                                     const char *path, struct latch *latch, struct clocks *clocks);
void record_sink_close(struct record_sink *sink);

/* Puts the header. Call it before the first record. sam must live as long as the sink. index: the file to write the
 * index to, NULL: none; index_format: HTS_FMT_CSI and so on, for BAM. beyond: a record to come begins behind the end of
 * its reference, which CRAM must know. -1: failed, and the error is in the latch. */
int record_sink_header(struct record_sink *sink, sam_hdr_t *sam, const char *index, int index_format, bool beyond);

/* Returns the changes and checks that records get. Set finish, samtools and verify before the first record. The sink
 * takes ownership of verify, which must be made for blocks if tasks make them (BAM, SAM.gz); samtools must outlive
 * the sink. */
struct record_out_options *record_sink_how(const struct record_sink *sink);

/* The records that are put from now on need not be in order, whatever --verify was told. */
void record_sink_forget_order(struct record_sink *sink);

/* The sink counts records put there. */
void record_sink_set_progress(struct record_sink *sink, struct progress *progress);

/* Checked records. They, and the list too if it has `fit`, must stay unchanged until record_sink_passed(). -1: stop. */
int record_sink_put(struct record_sink *sink, const struct record_list *list);

/* As bgzf_sink_mark() and so on (bgzf_omp.h). NULL: merged records go to no sink and are copied, so all has passed. */
uint64_t record_sink_mark(const struct record_sink *sink);
bool record_sink_passed(const struct record_sink *sink, uint64_t mark);
bool record_sink_passed_of(const void *sink, uint64_t mark);     /* for sliced_input_free() */
bool record_sink_will_pass(const struct record_sink *sink, uint64_t mark);
void record_sink_make_task(struct record_sink *sink);
int record_sink_help(struct record_sink *sink);

/* For several processes that write one file. The sink of the file's beginning, which has an index, will not save it
 * at its end; the others, to which no header is put, keep what the index needs (bam_index_log()). Call the first
 * behind record_sink_header(), the second before the first record. -1: out of memory, and the error is in the latch. */
void record_sink_hold_index(struct record_sink *sink);
int record_sink_log_index(struct record_sink *sink, sam_hdr_t *sam);

/* NULL: there is none. It stays the sink's. */
struct bam_index *record_sink_index(const struct record_sink *sink);

/* Writes everything that is left, and the index. -1: failed, and the error is in the latch. */
int record_sink_finish(struct record_sink *sink);

/* After finish: records put, and the sum of record_checksum() over what was encoded. */
uint64_t record_sink_count(const struct record_sink *sink);
uint64_t record_sink_checksum(const struct record_sink *sink);

/* After finish: blocks that are those of an input. */
struct copied_count record_sink_copied(const struct record_sink *sink);

#endif
