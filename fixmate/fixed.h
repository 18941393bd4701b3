/* SPDX-License-Identifier: MIT */
/* The producer of `fixmate`: an input whose templates are fixed by tasks (read/fixed_records.h), as a stream of
 * records in the order of the input: slice by slice (read/sliced_input.h). write/written.h is the output. */
#ifndef FIXED_H
#define FIXED_H

#include "base/memory_shares.h"
#include "base/record_stream.h"
#include "engine/driver.h"
#include "fixmate/parted_mates.h"
#include "read/fixed_records.h"
#include "read/sliced_input.h"
#include "read/input.h"
#include "write/record_list.h"

struct fixmate_opts;

struct fixed {
    struct driver *d;            /* it has the output */
    const struct fixmate_opts *opts;
    struct memory_rings rings;
    struct inputs in;       /* one */
    struct fix_request request;
    struct parted_mates parted;
    int64_t *lengths;            /* lengths of the references */
    struct fixed_records *records;
    struct sliced_input slices;
    bool is_out;                 /* the oldest slice in use is being written to the sink */
    struct record_list list;     /* list of the records of that slice */
    size_t max;                  /* records the list has room for */
};

/* Opens input and output, and begins to read. Refuses a header that states coordinate order. The struct must be zero
 * except for `d`. -1: the error is recorded in the latch; fixed_finish() must still be called. */
int fixed_open(struct fixed *fixed, const struct fixmate_opts *opts);

/* The fixed records. */
struct list_stream fixed_stream(struct fixed *fixed);

/* Finishes the output, and closes this: see driver_finish(). */
void fixed_finish(struct fixed *fixed);

#endif
