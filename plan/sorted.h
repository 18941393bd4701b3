/* SPDX-License-Identifier: MIT */
/* The first half of a sort: inputs become sorted sublists and runs, whose merge is an ordered stream of records. All of
 * it is opened here, each with its share of memory and threads. write/written.h is the other half. */
#ifndef SORTED_H
#define SORTED_H

#include "bam/fixmate.h"
#include "base/latch.h"
#include "base/memory_shares.h"
#include "base/memory_watch.h"
#include "base/progress.h"
#include "base/task_ring.h"
#include "read/block_reader.h"
#include "read/sort_input.h"
#include "sort/arenas.h"
#include "sort/sort_tasks.h"
#include "spill/spill_policy.h"

struct input_part;
struct input_request;
struct record_sink;
struct sort_opts;
struct sorted;
struct written;

/* Bytes for who takes the merged records and needs so many at least; 0: nobody does. */
size_t sorted_beside(const struct memory_rings *rings, size_t passes_on);

struct sorted_options {
    const struct sort_opts *opts;    /* but for ... */
    const struct input_request *in;
    const struct input_part *part;   /* what is read of each input; NULL: all */
    uint64_t size_hint;
    const struct fixmate_rules *fixes;   /* records are sorted as fixmate writes them, all of one input, but for the
                                  * lengths, which the header tells; NULL: as they are */
    /* The header of the input that is to be fixed has been read; in_order: it says that it is sorted by coordinate. It
     * may put another input in its place, which is grouped by name, and take some of the bytes that are left for the
     * arenas: then in.beside counts them. -1: the error is recorded in the latch. */
    int (*group)(void *arg, struct sorted *sorted, bool in_order, uint64_t left);
    void *arg;
    struct stats *stats;         /* of another sort, which stops them; NULL: it has its own */
    size_t passes_on;            /* the merged records are copied, and go through somebody's hands before they are put
                                  * to the sink, who needs so many bytes at least; 0: they are not */
};

struct sorted {
    const struct sort_opts *opts;
    const struct input_part *part;
    struct latch latch;          /* this and the next two serve both halves */
    struct stats *stats;
    bool has_stats;              /* of its own */
    struct progress progress;
    struct memory_watch watch;   /* the driver starts it */
    struct sort_inputs in;
    struct fixmate_rules rules;  /* of options->fixes */
    int64_t *reference_lengths;  /* its lengths */
    size_t beside;               /* bytes for who takes the merged records, if they are passed on; else 0 */
    struct written *to;          /* the other half; NULL: there is none ... */
    struct record_sink *sink;    /* ... and its sink; NULL: who takes the merged records copies them */
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
    struct task_ring closing;    /* of sorted_finish() */
};

/* Opens and allocates all that may fail, before the work that must not, and checks first what needs no input: so a
 * mistake is reported before a pipe is waited for. to: the other half, which is opened and prepared too, with the
 * options' output; NULL: there is none. Both halves are zero; only the latch may be in use. -1: the error is recorded
 * in the latch; finish it all the same. */
int sorted_open(struct sorted *sorted, const struct sorted_options *options, struct written *to);

/* Gives the outputs of the other half their names, unless the latch holds an error; it may get one here. Closes both
 * halves, ends the line of progress, and stops the stats, which measure this too, and stay. A team of n_threads does it
 * if one thread would take long. Call it behind the parallel region in which the halves were used: tasks that came too
 * late still look at their slots. */
void sorted_finish(struct sorted *sorted, int n_threads);

#endif
