/* SPDX-License-Identifier: MIT */
/* The producer of `markdup`: an input in coordinate order whose duplicates are marked, as a stream of records in the
 * order of the input (markdup/marking.h). write/written.h is the output. */
#ifndef MARKED_H
#define MARKED_H

#include "base/memory_shares.h"
#include "engine/driver.h"
#include "markdup/marking.h"
#include "read/passed_records.h"
#include "read/input.h"

struct markdup_opts;
struct memory_plan;

struct marked {
    struct driver *d;            /* it has the output */
    const struct markdup_opts *opts;
    struct memory_rings rings;
    struct inputs in;       /* one */
    sam_hdr_t *sam;              /* the header */
    struct merge_request request;
    int64_t *lengths;            /* lengths of the references; NULL: not needed */
    struct marking marking;
};

/* Opens the input only, for a forecast. The struct must be zero except for `d`, of which the latch is used. -1: the
 * error is recorded in the latch. In both cases, marked_look_end() closes it and frees the memory. */
int marked_look(struct marked *marked, const struct markdup_opts *opts);
void marked_look_end(struct marked *marked);

/* Returns the memory of the files plus that of records that are being keyed, marked and stored. */
struct output_use marked_use(struct output_use files);

/* Bytes for waiting records under this plan. */
size_t marked_room(const struct memory_plan *plan);

/* Opens input and output. Refuses a header that states the order of names. The struct must be zero except for `d`. -1:
 * the error is recorded in the latch; marked_finish() must still be called. */
int marked_open(struct marked *marked, const struct markdup_opts *opts);

/* Begins to read. Call it on the main thread of the team. -1: as above. */
int marked_begin(struct marked *marked);

/* Finishes the output, and closes this: see driver_finish(). */
void marked_finish(struct marked *marked);

#endif
