/* SPDX-License-Identifier: MIT */
/* The producer of a merge: sorted inputs, each read as slices (read/sliced_input.h), become the runs of a merge_ring,
 * whose result is an ordered stream of records. write/written.h is the output. */
#ifndef MERGED_H
#define MERGED_H

#include "base/memory_shares.h"
#include "base/record_stream.h"
#include "base/task_ring.h"
#include "engine/driver.h"
#include "merge/merge_inputs.h"
#include "read/sliced_input.h"

struct merge_opts;
struct merge_ring;
struct report_input;

struct merged {
    struct driver *d;            /* it has the output */
    const struct merge_opts *opts;
    struct memory_rings rings;
    struct merge_inputs inputs;
    struct sliced_input *each;   /* one for each input; NULL: not made yet */
    size_t n;
    struct chunk_pool pool;      /* shared chunks; zeros: each input has only its own */
    struct task_ring begins, ends;   /* rings of the tasks that open the inputs, and of those that free their buffers */
    struct sort_rule *rule;      /* for the output's header ... */
    const struct sort_rule *compares;   /* ... the same; NULL: keys decide */
    int64_t *lengths;            /* lengths of the output's references; NULL: not needed */
    bool out_of_order;           /* a record was found out of order: the main thread merges alone from there on, as
                                  * samtools does (sort/greedy_merge.h) */
    bool gave_up;                /* main thread: the inputs must be sorted instead; the latch has the reason */
    struct task_batches tasks;   /* tasks of all inputs, in a large team */
    size_t helped;               /* the input that was helped last */
    size_t refilled;             /* the input that was continued last */
    struct merge_ring *ring;
};

/* Opens inputs and output, and joins the headers. The struct must be zero except for `d`. -1: the error is recorded in
 * the latch; merged_finish() must still be called. */
int merged_open(struct merged *merged, const struct merge_opts *opts);

/* The reason why --copy-blocks copies no block, as far as that is known before the inputs are opened; NULL if it may
 * copy some. A constant string. */
const char *merged_copies_none(const struct merge_opts *opts);

/* The reason why --copy-blocks copies no block, as far as the headers of the inputs show it; NULL if it may copy some.
 * sorts: the merge replaces a sort; then it copies blocks only if all inputs are BAM. */
const char *merged_inputs_copy_none(const struct inputs *inputs, bool sorts);

/* Begins to read all inputs, and to merge them. Call it on the main thread of the team. -1: as above. */
int merged_begin(struct merged *merged);

/* The merged records. */
struct list_stream merged_stream(struct merged *merged);

/* Frees, in tasks, the shared chunks, and those inputs that were not freed when their last slice had passed. */
void merged_end(struct merged *merged);

/* The tally of all inputs: the records as they will be written. */
struct tally merged_tally(const struct merged *merged);

/* The report's data about the inputs, one entry for each; the caller frees the list, the names belong to the request.
 * NULL: out of memory, or no report is requested. */
struct report_input *merged_report(const struct merged *merged);

/* Finishes the output, and closes this: see driver_finish(). */
void merged_finish(struct merged *merged);

#endif
