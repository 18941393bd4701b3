/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "base/engine.h"
#include "base/latch.h"
#include "read/sliced_input.h"

enum { SLICE_LEAST = 64 << 10 }; /* least bytes of records in a slice: so a block of the sink has records of at most two
                                  * slices */

size_t sliced_input_slots_memory(uint32_t n_slices)
{
    return n_slices * sizeof(struct made_slice);
}

int sliced_input_begin_of(struct sliced_input *s, struct input *in, struct record_stream from,
                          const struct sliced_input_options *options)
{
    s->in = in;
    s->from = from;
    s->opt = *options;
    s->slices = calloc(options->n_slices, sizeof *s->slices);
    return s->slices ? 0 : latch_fail(options->engine->latch, "%s: out of memory", in->name);
}

int sliced_input_begin(struct sliced_input *s, struct input *in, const struct sliced_input_options *options)
{
    s->request.rule = options->rule;
    s->borrower.pool = options->pool;
    s->request.borrower = options->pool ? &s->borrower : NULL;
    in->merge = &s->request;
    if (input_begin(in) < 0)
        return -1;
    return sliced_input_begin_of(s, in, in->stream, options);
}

int sliced_input_end(const struct sliced_input *s, const char *where)
{
    return record_stream_end(&s->from, s->taken, where, s->in->name, s->opt.engine->latch);
}

void sliced_input_close(struct sliced_input *s)
{
    for (uint32_t i = 0; s->slices && i < s->opt.n_slices; i++)
        record_slice_free(&s->slices[i].records);
    free(s->slices);
    s->slices = NULL;
    record_slice_free(&s->next);
    record_slice_free(&s->spare);
}

/* Returns whether there is room for the slice that is being collected. */
static bool has_room(const struct sliced_input *s)
{
    size_t n = s->made - s->freed;
    return n < s->opt.n_slices && (!s->borrower.pool || chunk_pool_may_keep(&s->borrower, n));
}

/* Checks that the records of the slice are in order, and follow the records before them. */
static void look_for_disorder(struct sliced_input *s, const struct record_slice *slice)
{
    bool follows = s->made == 0;
    if (s->out_of_order)
        return;
    if (!follows) {
        const struct record_slice *before = sliced_input_at(s, s->made - 1);
        follows = record_slice_follows(before, before->n - 1, slice, 0, s->opt.rule);
    }
    if (!follows)
        s->out_of_order = slice->number;
    else if (slice->out_of_order < slice->n)
        s->out_of_order = slice->number + slice->out_of_order;
}

/* Makes the collected slice the last of those that are made. */
static void put_slice(struct sliced_input *s)
{
    struct record_slice *to = &s->slices[s->made % s->opt.n_slices].records, spare = *to;
    look_for_disorder(s, &s->next);
    *to = s->next;
    s->next = spare;
    record_slice_clear(&s->next);
    s->made++;
    if (s->borrower.pool)
        chunk_pool_keeps(&s->borrower, s->made - s->freed);
}

static int take(struct sliced_input *s, struct record_slice *slice)
{
    if (s->from.take(s->from.producer, slice) < 0)
        return -1;
    tally_add(&s->taken, (struct tally){.n = slice->n, .checksum = slice->checksum});
    return 0;
}

/* Takes a slice of the stream. In most cases it becomes a slice unchanged. */
static int collect(struct sliced_input *s)
{
    struct record_slice *to = &s->next, more;
    if (to->n == 0)
        return take(s, to);
    more = s->spare;
    int status = take(s, &more);
    if (status == 0 && record_slice_append(to, &more, s->opt.rule) < 0)
        status = latch_fail(s->opt.engine->latch, "%s: out of memory", s->in->name);
    s->spare = more;
    return status;
}

static void end(struct sliced_input *s)
{
    if (s->next.n)
        put_slice(s);
    s->ended = true;
}

int sliced_input_advance(struct sliced_input *s)
{
    while (!s->ended && has_room(s)) {
        enum chunk_state state = s->from.advance(s->from.producer);
        if (state == CHUNK_FAILED || (state == CHUNK_MADE && collect(s) < 0))
            return -1;
        if (state == CHUNK_AWAITED)
            return 0;
        if (state == CHUNK_NONE)
            end(s);
        else if (s->next.bytes >= SLICE_LEAST)
            put_slice(s);
    }
    return 0;
}

bool sliced_input_help(struct sliced_input *s)
{
    return !s->ended && s->from.help(s->from.producer);
}

void sliced_input_await(struct sliced_input *s, bool awaited, uint64_t now)
{
    s->waits += awaited && !s->is_awaited;
    s->waited += s->is_awaited ? now - s->since : 0;
    s->is_awaited = awaited;
    s->since = now;
}

void sliced_input_leave(struct sliced_input *s, size_t number, uint64_t mark)
{
    for (; s->left < number; s->left++) {
        s->slices[s->left % s->opt.n_slices].mark = mark;
        if (s->borrower.pool)
            chunk_pool_note(&s->borrower);
    }
}

/* Gives the memory of a slice to the pool, for any input. */
static void give_back(struct sliced_input *s, struct record_slice *slice)
{
    chunk_pool_put_records(s->borrower.pool, *slice);
    *slice = (struct record_slice){.n = 0};
    chunk_pool_keeps(&s->borrower, s->made - s->freed);
}

void sliced_input_free(struct sliced_input *s, sliced_input_passed_fn *passed, const void *sink)
{
    while (s->freed < s->left && passed(sink, s->slices[s->freed % s->opt.n_slices].mark))
        if (s->freed++, s->borrower.pool)
            give_back(s, &s->slices[(s->freed - 1) % s->opt.n_slices].records);
}
