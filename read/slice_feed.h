/* SPDX-License-Identifier: MIT */
/* The slices of a stream in spans of so many bytes, for a consumer whose tasks work at them. A slice goes back to the
 * stream, which uses its memory again, when all its spans are released. Only the main thread uses a feed;
 * slice_span_release() alone may be called by any thread. */
#ifndef SLICE_FEED_H
#define SLICE_FEED_H

#include <stdatomic.h>
#include "read/record_slice.h"
#include "read/record_stream.h"

struct latch;
struct lent_slice;
struct clocks;

/* Consecutive records of a slice. */
struct slice_span {
    const struct record_slice *slice;
    size_t first;                /* number of the first record in the slice ... */
    uint32_t n;                  /* ... and how many there are */
    const uint8_t *bytes;
    size_t size;
    atomic_int *users;           /* spans of the slice that are not released. NULL: there is no span */
};

/* All zeros: nothing is open. */
struct slice_feed {
    struct record_stream from;
    size_t most;                 /* bytes of a span, unless one record has more */
    const struct latch *latch;
    struct clocks *clocks;       /* may be NULL */
    struct lent_slice *lent;     /* n_lent, used in turn */
    uint32_t n_lent;
    uint64_t current;            /* number of the slice that the next span is of */
    struct slice_span span;      /* the next one, if slice_feed_advance() says that there is one */
};

/* n_slices: in memory at most, beside those of the stream; fewer if that says so. -1: out of memory. */
int slice_feed_open(struct slice_feed *feed, const struct record_stream *from, uint32_t n_slices, size_t most,
                    const struct latch *latch, struct clocks *clocks);

/* Call it when all spans are released, or after the parallel region. */
void slice_feed_close(struct slice_feed *feed);

/* Says what there is of the next span; never waits. */
enum chunk_state slice_feed_advance(struct slice_feed *feed);

/* The same, but waits, and works, until there is a span or none will come. help: of who releases spans; it may be
 * NULL if nobody has any. */
enum chunk_state slice_feed_await(struct slice_feed *feed, bool (*help)(void *), void *arg);

/* Takes the span, which stays as it is until it is released. */
struct slice_span slice_feed_take(struct slice_feed *feed);

static inline void slice_span_release(const struct slice_span *span)
{
    atomic_fetch_sub_explicit(span->users, 1, memory_order_release);
}

#endif
