/* SPDX-License-Identifier: MIT */
/* An input whose order is checked, and whose records are not kept: slices as a merge gets them (read/passed_records.h).
 * Each must follow the one before it. Tasks add up the checksum of samtools if it is requested. */
#ifndef CHECKED_H
#define CHECKED_H

#include "base/out_file.h"
#include "base/task_ring.h"
#include "base/tally.h"
#include "read/input.h"
#include "read/passed_records.h"

struct driver;
struct engine_opts;
struct samtools_checksum;

struct checked {
    struct driver *d;
    const struct engine_opts *opts;
    struct inputs in;            /* one */
    struct merge_request request; /* requests records with keys, changed as htslib would write them */
    struct sort_rule *rule;
    struct task_ring ring;       /* slices whose samtools checksum is being computed; slot i holds slices[i] */
    struct record_slice *slices; /* the slice of each slot */
    struct tally taken;
    struct samtools_checksum *samtools;   /* checksum of the records; NULL: not requested */
};

/* Opens the input. All fields except `d` and `opts` must be zero. -1: the error is recorded in the latch;
 * call checked_close() even then. */
int checked_open(struct checked *checked);

/* Begins to read. Call this function and the next two on the main thread of the team. -1: as above. */
int checked_begin(struct checked *checked);

/* Works until the next slice is made, and checks it. 1: it is in order; 0: all slices are checked; -1: as above. */
int checked_next(struct checked *checked);

/* Call it when all slices are checked: compares the tallies (record_stream_end()), and waits for the checksum. -1: as
 * above. */
int checked_end(struct checked *checked);

/* Writes the file of --checksum, if it is requested; driver_finish() gives it its name. Call this function and the next
 * one after the parallel region. */
void checked_print(struct checked *checked);

void checked_close(struct checked *checked);

#endif
