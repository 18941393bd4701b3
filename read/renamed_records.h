/* SPDX-License-Identifier: MIT */
/* The records of an input whose programs got other IDs in the merged header, with these in their PG tags. Only such an
 * input is read like this: its blocks are inflated one by one, by the main thread, which finds the records in them. */
#ifndef RENAMED_RECORDS_H
#define RENAMED_RECORDS_H

#include <stdint.h>
#include "bam/bam_header.h"
#include "bam/program_names.h"

struct bgzf_source;
struct byte_window;
struct latch;
struct renamed_records;

struct renamed_records_options {
    struct bgzf_source *source;  /* the records as they are in the input; stays the caller's, who closes it later */
    const struct byte_window *file;  /* what that reads from: it tells the place in the file */
    const char *path;            /* for messages */
    struct latch *latch;
};

/* Takes over the names, and the records behind the header from `header`, also if it fails. NULL: no memory, and the
 * error is recorded in the latch. */
struct renamed_records *renamed_records_open(const struct renamed_records_options *options,
                                             struct program_names *names, struct bam_header *header);

/* Call it after the source that reads the window is closed. */
void renamed_records_close(struct renamed_records *records);

/* The records; what is no record, and all behind it, comes as it is, for the reader to tell of. */
struct byte_window *renamed_records_window(struct renamed_records *records);

/* Bytes of memory, about, that it takes. */
size_t renamed_records_memory(void);

#endif
