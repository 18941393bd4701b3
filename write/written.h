/* SPDX-License-Identifier: MIT */
/* The output of every command that writes records. It takes records in order and makes the files: data, index,
 * checksum, counts. No file gets its name until all are complete. */
#ifndef WRITTEN_H
#define WRITTEN_H

#include <stdbool.h>
#include <stdint.h>
#include <htslib/sam.h>
#include "base/memory_shares.h"
#include "base/out_file.h"
#include "base/tally.h"
#include "stats/counter.h"
#include "write/counted_files.h"

struct bam_header;
struct bam_index;
struct counts;
struct engine;
struct samtools_checksum;
struct latch;
struct output_request;
struct list_stream;
struct record_sink;
struct sort_order;
struct sort_rule;

struct written {
    const struct output_request *request;
    const char *input;           /* name of the first input, for messages */
    const struct engine *engine;
    uint32_t n_slots;            /* slots of the sink */
    struct out_file data, index, checksum, counted[COUNTERS];
    struct counted_files more;   /* further files of counters */
    struct counter_numbers numbers;      /* the counters' main numbers, for the report; set when the texts are
                                          * printed */
    struct counts *counts;       /* counts of the records written; NULL: nothing is counted */
    struct samtools_checksum *samtools;   /* checksum of the records written; NULL: not requested */
    struct record_sink *sink;    /* into data */
    struct bam_index *bam_index; /* index of the BAM blocks that the sink writes; NULL: none */
    bool keeps_header;           /* the header is written as it was read */
};

/* Makes an output of which no file is open: written_close() may be called from then on. */
void written_begin(struct written *written, const struct output_request *request, const struct engine *engine);

/* Opens the files for data, checksum and counts, after written_begin(). It makes all possible checks before it waits
 * for a pipe. rings: see record_sink_open(). input: the name of the first input, for messages. -1: failed, and the
 * error is recorded in the latch; close the files in any case. */
int written_open(struct written *written, const struct memory_rings *rings, const char *input);

/* Returns whether the output is CRAM that takes bases from references. */
bool written_takes_reference(const htsFormat *format);

/* The memory of the files besides the sink's rings: indexes, --verify, memory of htslib. sam: the header of the
 * output. */
struct output_use written_use(const struct output_request *request, sam_hdr_t *sam, const struct memory_rings *rings);

/* Writes the header as it was read, with a warning. Call it before written_prepare() if the lines of the input's header
 * cannot be parsed. needs_program: a @PG line must be added, unless the request forbids it. -1: that is impossible, or
 * the format cannot hold such a header, and the error is recorded in the latch. */
int written_keep_header(struct written *written, const struct bam_header *header, bool needs_program);

/* Checks that the format can hold the first n_held references, opens the index and prepares --verify and counters.
 * --verify checks the order unless rule is NULL: -M ranks reads by fields that it then changes, so their order cannot
 * be checked afterwards. -1: failed, and the error is recorded in the latch. */
int written_prepare(struct written *written, sam_hdr_t *sam, int n_held, const struct sort_rule *rule);

/* Marks the header as sorted in that order (NULL: the stated order stays), and writes it. unplaced: as in
 * bam_header_mark_sorted(). beyond: as in record_sink_header(). sam must live as long as the files are open. -1:
 * failed, and the error is recorded in the latch. */
int written_header(struct written *written, sam_hdr_t *sam, const struct sort_order *order, bool unplaced,
                   bool beyond);

/* For BAM: lets the sink add its blocks to the index, which becomes that of the output. written_header() does so if the
 * request names an index. -1: out of memory, also if index is NULL, and the error is recorded in the latch. */
int written_index(struct written *written, struct bam_index *index);

/* Puts all records of the stream to the sink. At its end, compares the records that went through the sink with those
 * that came in, and completes the index, the checksum and the counts. -1: failed, and the error is recorded in the
 * latch. */
int written_all(struct written *written, const struct list_stream *stream);

/* Prints the text of each counter of the request to its file, which is open, and writes the counter's further files.
 * counts: their counts; NULL: the request has no counters. -1: failed, and the error is recorded in the latch. */
int written_counts(struct written *written, struct counts *counts);

/* Puts all files in place. -1: failed, and the error is recorded in the latch. */
int written_commit(struct written *written);

/* Removes files that are not in place; other threads may still be writing to them. */
void written_abandon(struct written *written);

/* Does the same as written_abandon(), and frees all memory. NULL: nothing was opened. */
void written_close(struct written *written);

/* Writes the line of --checksum to an open file; the caller finishes and commits it, or abandons it:
 *
 *   records=NUMBER xxh3sum=HEX
 *
 * NUMBER is decimal. HEX is the sum of record_checksum() over all records, modulo 2^64, as 16 hexadecimal digits. So
 * the line does not depend on the order of the records. -1: failed, and the error is recorded in the latch. */
int written_checksum(struct out_file *out, struct tally tally, struct latch *latch);

/* Writes the table of `samtools checksum path` in the same way. */
int written_samtools(struct out_file *out, struct samtools_checksum *sum, const char *path, struct latch *latch);

#endif
