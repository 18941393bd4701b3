/* SPDX-License-Identifier: MIT */
/* An input whose records are counted, and not kept: chunks of it (read/passed_records.h), which tasks count as they
 * come, and join in the order of the input (stats/join_chain.h). */
#ifndef COUNTED_H
#define COUNTED_H

#include "engine/driver.h"
#include "read/chunk_reader.h"
#include "read/input.h"
#include "read/passed_records.h"
#include "stats/counts.h"
#include "stats/join_chain.h"

struct stats_opts;

struct counted {
    struct driver *d;
    const struct stats_opts *opts;
    struct memory_rings rings;
    struct inputs in;            /* one */
    struct look_request looks;
    struct chunk_reader *chunks; /* of the input */
    struct counts *counts;
    struct join_chain chain;     /* of chunks */
    uint64_t n_looked;           /* chunks that the main thread has taken back */
    struct record_slice spare;   /* empty; swapped for a chunk's slice, which is empty, too */
    enum chunk_state state;      /* of the next chunk */
};

/* Opens the input. All but `d` and `opts` is zero. -1: the error is recorded in the latch; close it anyway. */
int counted_open(struct counted *counted);

/* Begins to read and count. -1: as above. Main thread, as the next. */
int counted_begin(struct counted *counted);

/* Works until the next chunk is counted and joined. 1: done; 0: all are; -1: as above. */
int counted_next(struct counted *counted);

/* All chunks are joined: compares how many records there were with how many were counted. -1: as above. */
int counted_end(const struct counted *counted);

/* Call it after the parallel region. */
void counted_close(struct counted *counted);

#endif
