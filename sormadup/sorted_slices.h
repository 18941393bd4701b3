/* SPDX-License-Identifier: MIT */
/* The merged records of a sort as a stream of slices, for `markdup` or for another sort: the tasks that merge ranges
 * also copy the records. So a slice of a run can be used again before the sink has passed its records. */
#ifndef SORTED_SLICES_H
#define SORTED_SLICES_H

#include "base/record_stream.h"
#include "sort/sorted.h"

/* Approximate bytes of a slice: it fits into a cache, and its task is long enough to hide its cost. */
enum { SORTED_SLICE = 512 << 10 };

/* Zero-initialised: nothing is open. */
struct sorted_slices {
    struct sorted *sorted;
    struct record_slice *slices; /* for each range, the copies of its list; owned by its task */
    uint32_t n_slices;
    struct tally taken;          /* tally of the records */
};

/* Usual bytes of the copies. */
size_t sorted_slices_memory(int n_threads);

/* Opens the merge of all records read, including the copies, and reports it. -1: failed, and the error is recorded in
 * the sort's latch. In both cases, close it after the parallel region. */
int sorted_slices_begin(struct sorted_slices *stream, struct sorted *sorted);
void sorted_slices_close(struct sorted_slices *stream);

/* Functions of struct record_stream. At the end, the records of the arenas and runs must have come out of the merge. */
enum chunk_state sorted_slices_advance(void *stream);
int sorted_slices_take(void *stream, struct record_slice *slice);
bool sorted_slices_help(void *stream);
int sorted_slices_end(void *stream, struct tally *given);

static inline struct record_stream sorted_slices_stream(struct sorted_slices *stream)
{
    return (struct record_stream){sorted_slices_advance, sorted_slices_take, sorted_slices_help, sorted_slices_end,
                                  stream, .is_reordered = true};
}

#endif
