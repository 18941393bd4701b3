/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "base/engine.h"
#include "read/slice_feed.h"

struct lent_slice {
    struct record_slice records;
    atomic_int users;
};

int slice_feed_open(struct slice_feed *f, const struct record_stream *from, uint32_t n_slices, size_t most,
                    const struct engine *engine)
{
    uint32_t n = from->most_lent && from->most_lent < n_slices ? from->most_lent : n_slices;
    *f = (struct slice_feed){.from = *from, .most = most, .engine = engine, .n_lent = n};
    f->lent = calloc(n, sizeof *f->lent);
    return f->lent ? 0 : -1;
}

void slice_feed_close(struct slice_feed *f)
{
    for (uint32_t i = 0; f->lent && i < f->n_lent; i++)
        record_slice_free(&f->lent[i].records);
    free(f->lent);
    *f = (struct slice_feed){.lent = NULL};
}

/* Shows the next records of the current slice. False: there are none. */
static bool show(struct slice_feed *f)
{
    struct lent_slice *lent = &f->lent[f->current % f->n_lent];
    const struct record_slice *s = &lent->records;
    size_t first = f->span.slice ? f->span.first + f->span.n : 0, size;
    if (first >= s->n)
        return false;
    uint32_t n = record_slice_fit(s, first, f->most, &size);
    const uint8_t *bytes = f->span.slice ? f->span.bytes + f->span.size : s->records.p;
    f->span = (struct slice_span){s, first, n, bytes, size, &lent->users};
    return true;
}

enum chunk_state slice_feed_advance(struct slice_feed *f)
{
    while (!f->span.users && !show(f)) {
        struct lent_slice *next = &f->lent[(f->current + 1) % f->n_lent];
        if (atomic_load_explicit(&next->users, memory_order_acquire) > 0)
            return CHUNK_AWAITED;
        enum chunk_state state = f->from.advance(f->from.producer);
        if (state != CHUNK_MADE)
            return state;
        if (f->from.take(f->from.producer, &next->records) < 0)
            return CHUNK_FAILED;
        f->current++;
        f->span = (struct slice_span){.slice = NULL};
    }
    return CHUNK_MADE;
}

static enum chunk_state advance(void *feed)
{
    return slice_feed_advance(feed);
}

static bool help_from(void *feed)
{
    const struct record_stream *from = &((const struct slice_feed *)feed)->from;
    return from->help(from->producer);
}

enum chunk_state slice_feed_await(struct slice_feed *f, task_help_fn *help, void *arg)
{
    return stream_steps_await((struct stream_steps){advance, help_from, f}, help, arg, f->engine);
}

struct slice_span slice_feed_take(struct slice_feed *f)
{
    struct slice_span span = f->span;
    atomic_fetch_add_explicit(span.users, 1, memory_order_relaxed);
    f->span.users = NULL;
    return span;
}
