/* SPDX-License-Identifier: MIT */
/* The records of uncompressed BAM as slices that point to where the bytes were read or received. A record is copied
 * only if it lies in two places of memory, or if its name lacks the NUL, which is added. Main thread. */
#ifndef RAW_RECORDS_H
#define RAW_RECORDS_H

#include <stdint.h>
#include "base/record_stream.h"

struct byte_window;
struct raw_records;
struct engine;

/* The window holds records only, up to its end. The caller keeps it, and closes it later. n_ref: references of the
 * header. NULL: out of memory, and the error is recorded in the latch. */
struct raw_records *raw_records_open(struct byte_window *window, int32_t n_ref, const struct engine *engine);
void raw_records_close(struct raw_records *records);

/* Releases the window's memory. Call it when no record is in use. */
void raw_records_end(struct raw_records *records);

/* The stream of the records, of which only the beginnings are known (record_slice_note()). A broken record, or one that
 * the end cuts, is the last one; the consumer finds the fault and reports it. */
struct record_stream raw_records_stream(struct raw_records *records);

#endif
