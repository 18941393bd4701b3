/* SPDX-License-Identifier: MIT */
/* An input whose records are counted and not kept. Tasks count chunks of it (read/passed_records.h) as they come, and
 * join them in the order of the input (stats/join_tree.h). Some settings need the counts of all records before: with
 * them the main thread counts (counts_in_sequence()). */
#ifndef COUNTED_H
#define COUNTED_H

#include "engine/driver.h"
#include "read/chunk_reader.h"
#include "read/input.h"
#include "read/passed_records.h"
#include "stats/counts.h"
#include "stats/join_tree.h"

struct stats_opts;

struct counted {
    struct driver *d;
    const struct stats_opts *opts;
    struct memory_rings rings;
    struct inputs in;            /* one input */
    struct look_request looks;
    struct chunk_reader *chunks; /* the producer of the input's stream */
    struct tally taken;          /* number of records that were counted */
    struct counts *counts;
    struct join_tree tree;       /* joins the parts of chunks */
    struct task_batches tasks;   /* tasks of the input, in a large team */
    uint64_t n_looked;           /* chunks that the main thread has taken back */
    struct record_slice spare;   /* empty; swapped for a chunk's slice, which is also empty */
};

/* Opens the input. All fields except `d` and `opts` must be zero. Returns -1 on an error, which is recorded in the
 * latch; call counted_close() even then. */
int counted_open(struct counted *counted);

/* Begins to read and count. Returns -1 on an error, as above. Call this function and the next one on the main
 * thread. */
int counted_begin(struct counted *counted);

/* Works until the next chunk is counted and joined. Returns 1 when it is, 0 when all chunks are done, and -1 on an
 * error, as above. */
int counted_next(struct counted *counted);

/* Call it when all chunks are joined: see record_stream_end(). */
int counted_end(const struct counted *counted);

/* Call it after the parallel region. */
void counted_close(struct counted *counted);

#endif
