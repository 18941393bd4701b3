/* SPDX-License-Identifier: MIT */
/* The parts of a sort, opened in one place, each with its share of memory and threads. */
#ifndef SORT_PARTS_H
#define SORT_PARTS_H

#include "base/latch.h"
#include "base/memory_shares.h"
#include "base/memory_watch.h"
#include "base/progress.h"
#include "base/task_ring.h"
#include "read/block_reader.h"
#include "read/sort_input.h"
#include "report/sort_report.h"
#include "sort/arenas.h"
#include "sort/sort_tasks.h"
#include "spill/spill_policy.h"
#include "write/sort_files.h"

struct input_part;

struct sort_parts {
    const struct sort_opts *opts;
    const struct input_part *part;   /* what is read of each input; NULL: all */
    struct latch latch;
    struct stats *stats;
    struct sort_report report;
    struct progress progress;
    struct memory_watch watch;   /* the driver starts it */
    struct sort_inputs in;
    struct sort_files out;
    struct memory_rings rings;   /* memory, before anything is opened ... */
    struct memory_plan plan;     /* ... and once the headers are known */
    struct arenas arenas;        /* the memory for records */
    int64_t *lengths;            /* of references; NULL: the output need not know what lies beyond them */
    struct block_reader reader;  /* blocks of the input, into an arena */
    struct sort_tasks sorts;
    struct spill_policy spill;
    struct merge_ring *merge;    /* the driver opens it when all is read */
    sam_hdr_t *sam;              /* header of the first input, then of the output */
    struct sort_rule *rule;
    struct minhash *minhash;     /* of -M; else NULL */
    struct task_ring closing;    /* of sort_parts_finish() */
};

/* Opens and allocates all that may fail, before the work that must not, and checks first what needs no input: so a
 * mistake is reported before a pipe is waited for. parts are zero; only the latch may be in use. -1: the error is
 * recorded in the latch; close it all the same. */
int sort_parts_open(struct sort_parts *parts, const struct sort_opts *opts);

/* The same for a process that reads a part of each input. NULL: all of them. */
int sort_parts_open_part(struct sort_parts *parts, const struct sort_opts *opts, const struct input_part *part);

/* Gives the outputs their names, unless the latch holds an error; it may get one here. Closes all but stats and report,
 * which measure this, too. A team of n_threads does it if one thread would take long.
 * Call it behind the parallel region in which the parts were used: tasks that came too late still look at their
 * slots. */
void sort_parts_finish(struct sort_parts *parts, int n_threads);

#endif
