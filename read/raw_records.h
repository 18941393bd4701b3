/* SPDX-License-Identifier: MIT */
/* The records of uncompressed BAM as slices, which lie where they were read or received. Only a record that lies in two
 * places of memory is copied, and one whose name lacks its NUL, which it gets. Main thread. */
#ifndef RAW_RECORDS_H
#define RAW_RECORDS_H

#include <stdint.h>
#include "read/record_stream.h"

struct byte_window;
struct latch;
struct raw_records;
struct clocks;

/* The window has records alone, to its end; it stays the caller's, who closes it later. n_ref: references of the
 * header. clocks may be NULL. NULL: out of memory, and the error is recorded in the latch. */
struct raw_records *raw_records_open(struct byte_window *window, int32_t n_ref, struct latch *latch,
                                     struct clocks *clocks);
void raw_records_close(struct raw_records *records);

/* Lets go of the window's memory. Call it when all records are used. */
void raw_records_end(struct raw_records *records);

/* The records, noted only (record_slice_note()). A broken record, or one that is cut by the end, is the last one; the
 * consumer finds the fault and reports it. */
struct record_stream raw_records_stream(struct raw_records *records);

#endif
