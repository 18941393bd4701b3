/* SPDX-License-Identifier: MIT */
/* The files that a sort makes: sorted records, their index, --checksum. None of them is
 * there under its name before all are whole. */
#ifndef SORT_FILES_H
#define SORT_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <htslib/sam.h>
#include "base/out_file.h"

struct latch;
struct memory_rings;
struct record_sink;
struct sort_opts;
struct sort_rule;
struct stats;

struct sort_files {
    const struct sort_opts *opts;
    struct latch *latch;
    struct out_file data, index, checksum;
    struct record_sink *sink;    /* into data */
};

/* Opens data and checksum; first what can be told before a pipe is waited for. rings: see
 * record_sink_open(). -1: told to the latch; to be closed all the same. */
int sort_files_open(struct sort_files *files, const struct sort_opts *opts, const struct memory_rings *rings,
                    struct latch *latch, struct stats *stats);

/* Bytes of memory that all that takes beside the sink, of `budget` in all: indexes, --verify, what htslib keeps. sam: of
 * the output. */
size_t sort_files_memory(const struct sort_files *files, sam_hdr_t *sam, uint64_t budget);

/* What depends on references and order: whether the format can have them, the index, and --verify,
 * which looks at the order unless rule is NULL (-M ranks reads by what it then changes, so
 * that nobody can tell their order afterwards). -1: told to the latch. */
int sort_files_prepare(struct sort_files *files, sam_hdr_t *sam, const struct sort_rule *rule);

/* Marks the header as sorted and writes it. unplaced: as in bam_header_mark_sorted(). sam must
 * live as long as the files are open. -1: told to the latch. */
int sort_files_header(struct sort_files *files, sam_hdr_t *sam, bool unplaced);

/* All records are in the sink: finishes it, compares what went through it with what was read, and writes
 * the checksum. -1: told to the latch. */
int sort_files_finish(struct sort_files *files, uint64_t n_records, uint64_t checksum);

/* Puts all of them in place. -1: told to the latch. */
int sort_files_commit(struct sort_files *files);

/* What is not in place is gone; others may still be writing to it. */
void sort_files_abandon(struct sort_files *files);

/* The same, and all memory is given back. */
void sort_files_close(struct sort_files *files);

#endif
