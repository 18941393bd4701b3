/* SPDX-License-Identifier: MIT */
/* Cuts the slices of a stream into spans of limited size, for a consumer whose tasks work on them. When all spans of a
 * slice are released, the slice goes back to the stream, which uses its memory again. Only the main thread uses a feed,
 * but any thread may call slice_span_release(). */
#ifndef SLICE_FEED_H
#define SLICE_FEED_H

#include <stdatomic.h>
#include "base/record_stream.h"
#include "read/record_slice.h"

struct engine;
struct lent_slice;

/* Consecutive records of a slice. */
struct slice_span {
    const struct record_slice *slice;
    size_t first;                /* number of the first record in the slice ... */
    uint32_t n;                  /* ... and the number of records */
    const uint8_t *bytes;
    size_t size;
    atomic_int *users;           /* number of spans of the slice that are not released. NULL: there is no span */
};

/* A zero-initialised struct has nothing open. */
struct slice_feed {
    struct record_stream from;
    size_t most;                 /* largest number of bytes of a span, unless a single record has more */
    const struct engine *engine;
    struct lent_slice *lent;     /* n_lent, used in turn */
    uint32_t n_lent;
    uint64_t current;            /* number of the slice that contains the next span */
    struct slice_span span;      /* the next span, if slice_feed_advance() has returned that there is one */
};

/* n_slices: most slices in memory, besides those of the stream; fewer if the stream's most_lent is lower. -1: out of
 * memory. */
int slice_feed_open(struct slice_feed *feed, const struct record_stream *from, uint32_t n_slices, size_t most,
                    const struct engine *engine);

/* Call it when all spans are released, or after the parallel region. */
void slice_feed_close(struct slice_feed *feed);

/* Returns the state of the next span; never waits. */
enum chunk_state slice_feed_advance(struct slice_feed *feed);

/* As slice_feed_advance(), but waits, and works, until there is a span or none will come. help: does work of the
 * consumer, which releases spans; task_no_help if no span is in use. */
enum chunk_state slice_feed_await(struct slice_feed *feed, task_help_fn *help, void *arg);

/* Takes the span, which does not change until it is released. */
struct slice_span slice_feed_take(struct slice_feed *feed);

static inline void slice_span_release(const struct slice_span *span)
{
    atomic_fetch_sub_explicit(span->users, 1, memory_order_release);
}

#endif
