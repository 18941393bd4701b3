/* SPDX-License-Identifier: MIT */
/* The two sorts of a rank: sort A of the records that it reads, and sort B of those that it writes. A is only the
 * producer of a sort; the exchange takes its records. */
#ifndef RANK_PARTS_H
#define RANK_PARTS_H

#include <limits.h>
#include "base/engine.h"
#include "base/latch.h"
#include "mpi/block_boundary.h"
#include "mpi/exchange.h"
#include "mpi/input_split.h"
#include "mpi/rank_lists.h"
#include "mpi/rank_report.h"
#include "engine/driver.h"
#include "engine/engine_opts.h"
#include "sort/sorted.h"

/* Sums over all ranks, modulo 2^64. */
struct rank_totals {
    struct tally records;
    uint64_t bytes;
};

struct rank_parts {
    const struct engine_opts *opts;
    struct mpi_team team;
    struct input_split split;
    struct engine_opts each;       /* options of A and of B: half the memory, and this rank's output */
    struct sorted a, b;
    struct driver d;             /* driver of B: its output and engine. Its latch is latch_b */
    struct splitters splitters;
    struct rank_lists lists;     /* A's sublists */
    struct record_shares shares;
    bool keeps;                  /* all ranks keep their own records in A, until they are written */
    struct exchange *exchange;
    struct block_boundary boundary;
    struct rank_report report;
    struct rank_totals in;       /* sums over all ranks */
    bool unplaced;               /* no rank has a record with a reference */
    char part_path[PATH_MAX];        /* the path of B's output, except at rank 0; the output never gets this name */
    int n_threads;
    struct engine engine_a;      /* engine of A. Its latch is latch_a */
    struct latch latch_a, latch_b;   /* for the errors of the two sorts */
    struct latch latch;          /* errors that are neither A's nor B's */
};

/* Memory that each sort leaves to the other one. Both exist while records are exchanged, and each plans with 64 MiB in
 * addition to -m. But neither has a full sink then, and the program and MPI are there only once. The value was
 * measured, and has a margin. */
static const size_t RANK_PARTS_OVERHEAD = (size_t)6 << 20;

/* Returns the sums, over all ranks, of `mine`. Every rank calls it. */
struct rank_totals rank_parts_add_up(struct rank_totals mine);

/* Lets one of the two sorts learn from the first records of all inputs, so that all ranks make the same keys. */
void rank_parts_teach(const struct rank_parts *parts, struct sorted *sort);

/* Runs main_thread(parts) with the rank's threads. */
void rank_parts_run(struct rank_parts *parts, void (*main_thread)(void *));

/* Ends all ranks with the error of sort B. */
_Noreturn void rank_parts_abort(struct rank_parts *parts);

/* Closes one of the two sorts, whose records are not needed any more. */
void rank_parts_close(struct rank_parts *parts, struct sorted *sort);

#endif
