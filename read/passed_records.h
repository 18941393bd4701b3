/* SPDX-License-Identifier: MIT */
/* Records of BAM that are left out or changed between their file and the arena: of those that the input option
 * filter=EXPRESSION does not let pass, and of programs that got other IDs in the merged header, whose PG tags name
 * these then. Tasks do it. Only inputs with one of both are read like this. */
#ifndef PASSED_RECORDS_H
#define PASSED_RECORDS_H

#include "bam/bam_header.h"
#include "bam/program_names.h"
#include "base/memory_shares.h"

struct bgzf_source;
struct byte_window;
struct latch;
struct passed_records;
struct stats;

struct passed_records_options {
    struct bgzf_source *source;  /* the records as they are in the input; stays the caller's, who closes it before */
    const struct byte_window *file;  /* what that reads from: it tells the place in the file */
    const char *filter;          /* an expression, which is copied; NULL: all records pass */
    struct sam_use use;          /* memory, see memory_plan_sam() */
    const char *path;            /* for messages */
    struct latch *latch;
    struct stats *stats;         /* may be NULL */
};

/* Takes over the names that programs have got, which may be none, and the records behind the header from `header`, also
 * if it fails. NULL: no memory, and the error is recorded in the latch; free the names all the same. */
struct passed_records *passed_records_open(const struct passed_records_options *options, struct program_names *names,
                                           struct bam_header *header);

/* Gives back all but the ring, when all records are used. Tasks may still look at that: close it later. */
void passed_records_end(struct passed_records *records);

/* Call it after the parallel region, and after both sources, the one that it reads and the one that reads its window,
 * are closed. */
void passed_records_close(struct passed_records *records);

/* The records that pass. */
struct byte_window *passed_records_window(struct passed_records *records);

#endif
