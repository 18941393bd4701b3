/* SPDX-License-Identifier: MIT */
/* The records of a sort as slices, for `markdup` and for who reads them on: tasks that merge ranges copy their records,
 * too. So nobody waits for the sink before a slice of a run is used again. */
#ifndef SORTED_SOURCE_H
#define SORTED_SOURCE_H

#include "read/record_stream.h"
#include "sort/sorted.h"

/* Bytes of a slice, about: it fits into a cache, and its task takes so long that it costs nothing. */
enum { SORTED_SLICE = 512 << 10 };

/* All zeros: nothing is open. */
struct sorted_source {
    struct sorted *sorted;
    struct record_slice *slices; /* of each range, the copies of its list; its task's */
    uint32_t n_slices;
    struct tally taken;          /* of the records */
};

/* Bytes of the copies, mostly. */
size_t sorted_source_memory(int n_threads);

/* Opens the merge of all that was read, with the copies a part of it, and tells of it. -1: failed, and the error is
 * recorded in the sort's latch. Either way, close it behind the parallel region. */
int sorted_source_begin(struct sorted_source *source, struct sorted *sorted);
void sorted_source_close(struct sorted_source *source);

/* Functions of struct record_stream. */
enum chunk_state sorted_source_advance(void *source);
int sorted_source_take(void *source, struct record_slice *slice);

/* All were taken: what is in the arenas and runs has come out of the merge. -1: it has not, and the error is recorded
 * in the latch. */
int sorted_source_end(const struct sorted_source *source, struct latch *latch);

/* All of them. At its end, what is in the arenas and runs must have come out of the merge. */
struct record_stream sorted_source_stream(struct sorted_source *source);

#endif
