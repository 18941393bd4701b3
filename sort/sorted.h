/* SPDX-License-Identifier: MIT */
/* The producer of a sort: inputs become sorted sublists and runs, and the merge of these is an ordered stream of
 * records. This module opens all parts, each with its share of memory and threads. write/written.h writes the
 * records. */
#ifndef SORTED_H
#define SORTED_H

#include "base/memory_shares.h"
#include "base/memory_watch.h"
#include "base/record_stream.h"
#include "base/task_ring.h"
#include "read/block_reader.h"
#include "read/input.h"
#include "sort/arenas.h"
#include "sort/sort_tasks.h"
#include "sort/spill_policy.h"

struct driver;
struct engine;
struct input_request;
struct merge_ring_options;
struct progress;
struct record_sink;
struct engine_opts;
struct sorted;
struct written;

/* On several nodes, records are sorted in two turns: the first sorts what a node reads, the second what it writes. */
enum sort_turn {
    SORT_ONLY,
    SORT_FIRST,                  /* the caller lets the rule learn. With -M, reads keep their ranks */
    SORT_SECOND,                 /* as in the first turn, which has also normalised the records, and turned reads */
};

struct sorted_options {
    const struct engine_opts *opts;    /* all options except for their inputs, ... */
    const struct input_request *in;    /* ... which this request replaces; not read if `opened` is set */
    struct inputs *opened;       /* open inputs, which the sort takes over. NULL: it opens the inputs of `in` */
    enum sort_turn turn;
    uint64_t size_hint;
    const struct memory_rings *rings;
    struct written *to;          /* the output, which is open: the sort prepares it. NULL: the next producer copies the
                                  * records */
    struct output_use output;    /* memory that others take at the same time, such as consumers after the sort. If there
                                  * is an output, only the overhead counts */
    const struct engine *engine; /* if its clocks are NULL, memory was short, and the sort fails */
    struct progress *progress;   /* the caller's, too; NULL if not needed */
};

struct sorted {
    const struct engine_opts *opts;
    enum sort_turn turn;
    const struct engine *engine; /* this field and the next serve the sort and its output */
    struct progress *progress;
    struct memory_watch watch;   /* the driver starts it */
    struct inputs in;
    struct written *to;          /* the output; NULL: the next producer copies the records ... */
    struct record_sink *sink;    /* ... and its sink, or NULL */
    struct output_use output;    /* as in the options */
    struct memory_rings rings;   /* memory, before anything is opened ... */
    struct memory_plan plan;     /* ... and once the headers are known */
    struct arenas arenas;        /* the memory for records */
    int64_t *lengths;            /* lengths of references; NULL: it does not matter which records lie beyond them */
    struct block_reader reader;  /* blocks of the input, into an arena */
    struct sort_tasks sorts;
    struct spill_policy spill;
    struct merge_ring *merge;    /* sorted_begin_merge() opens it when all input is read */
    sam_hdr_t *sam;              /* header of the first input, then of the output */
    struct sort_rule *rule;
    struct minhash *minhash;     /* minimisers of -M; else NULL */
    struct task_ring closing;    /* this field and the next serve sorted_finish() */
    struct driver *driver;
};

/* Opens and allocates everything that may fail, before the work begins, and prepares the output. The struct must be
 * zero, except that `engine` may be set. -1: the error is recorded in the latch; call sorted_finish() anyway, with
 * `engine` set. */
int sorted_open(struct sorted *sorted, const struct sorted_options *options);

/* Count and checksum of the records that were read, as they will be written (-M turns reads). Zeros if the sort could
 * not be opened. */
struct tally sorted_tally(const struct sorted *sorted);

/* Writes the header to `to`, when all input is read. -1: stop. */
int sorted_put_header(const struct sorted *sorted, struct written *to);

/* Opens sorted->merge for all records that were read, and reports it. -1: stop. */
int sorted_merge(struct sorted *sorted);

/* The merged records, range by range, when sorted_merge() has begun. Its end gives the tally of what was read. */
struct list_stream sorted_stream(struct sorted *sorted);

/* ---- the steps of sorted_merge() ---- */

/* Fills *how for the merge of all records that were read, including the spilled runs. again: the runs stay, for
 * another merge. -1: stop. The arenas in it are the third seam between mpi/ and the engine, a range of keys: the caller
 * may replace them by others, in the order of the input, whose sublists are only the parts that lie in the range. The
 * records go where it puts them: to other ranks, or to a sink. */
int sorted_prepare_merge(struct sorted *sorted, struct merge_ring_options *how, bool again);

/* Opens sorted->merge. After the team it may be closed, then prepared and opened again. -1: stop. */
int sorted_begin_merge(struct sorted *sorted, const struct merge_ring_options *how);

/* Reports on stderr that runs are merged, if there are any, as `samtools sort` does. `samtools collate` does not. */
void sorted_say_merge(const struct sorted *sorted, uint64_t n_runs, uint64_t n_sublists);

/* Closes the sort, in a team of n_threads if one thread would take long. driver: it has the output, which
 * driver_finish() names and closes meanwhile; NULL: the records go to another producer. Call it after the parallel
 * region in which the sort was used: late tasks still look at their slots. */
void sorted_finish(struct sorted *sorted, int n_threads, struct driver *driver);

#endif
