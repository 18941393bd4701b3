/* SPDX-License-Identifier: MIT */
#include "base/engine.h"
#include "base/latch.h"
#include "base/task_ring.h"
#include "base/record_stream.h"

struct stream_wait {
    struct stream_steps steps;
    task_help_fn *help;
    void *arg;
    const struct latch *latch;
    enum chunk_state state;
};

static bool is_there(void *wait)
{
    struct stream_wait *w = wait;
    w->state = latch_tripped(w->latch) ? CHUNK_FAILED : w->steps.advance(w->steps.producer);
    return w->state != CHUNK_AWAITED;
}

/* Helps the consumer first, because that makes room for more slices. */
static bool help_both(void *wait)
{
    const struct stream_wait *w = wait;
    return w->help(w->arg) || w->steps.help(w->steps.producer);
}

enum chunk_state stream_steps_await(struct stream_steps steps, task_help_fn *help, void *arg,
                                    const struct engine *engine)
{
    struct stream_wait w = {steps, help, arg, engine->latch, CHUNK_AWAITED};
    if (!is_there(&w))
        task_wait(is_there, help_both, &w, engine->clocks);
    return w.state;
}

int record_stream_end(const struct record_stream *stream, struct tally taken, const char *where, const char *path,
                      struct latch *latch)
{
    struct tally given;
    if (stream->end(stream->producer, &given) < 0)
        return -1;
    return tally_compare(given, taken, where, path, latch);
}

int list_stream_next(const struct list_stream *stream, struct record_list *list, const struct engine *engine)
{
    struct stream_steps steps = {stream->advance, stream->help, stream->producer};
    enum chunk_state state = stream_steps_await(steps, task_no_help, NULL, engine);
    if (state != CHUNK_MADE)
        return state == CHUNK_NONE ? 0 : -1;
    return stream->take(stream->producer, list) < 0 ? -1 : 1;
}
