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
    int64_t *lengths;            /* of the references; NULL: nobody asks for them */
    struct marking marking;
};

/* Opens the input alone, for a forecast. All but `d` is zero, of which the latch is used. -1: the error is recorded in
 * the latch. Either way, marked_look_end() closes it, and gives the memory back. */
int marked_look(struct marked *marked, const struct markdup_opts *opts);
void marked_look_end(struct marked *marked);

/* How memory is divided before any file is opened. Call it once: see limits_memory(). */
struct memory_rings marked_rings(const struct engine_opts *opts);

/* Bytes for records that wait, with this plan. */
size_t marked_room(const struct memory_plan *plan);

/* Opens input and output. All but `d` is zero. -1: the error is recorded in the latch; finish it anyway. */
int marked_open(struct marked *marked, const struct markdup_opts *opts);

/* Begins to read. Call it on the main thread of the team. -1: as above. */
int marked_begin(struct marked *marked);

/* Finishes the output, and closes this: see driver_finish(). */
void marked_finish(struct marked *marked);

#endif
