/* SPDX-License-Identifier: MIT */
#include "base/latch.h"
#include "base/stats.h"
#include "base/task_ring.h"
#include "bgzf_omp.h"
#include "engine/engine_memory.h"
#include "stats/counted.h"
#include "stats/stats_opts.h"

/* -------------------------------------------------------------------- open */

/* The input waits until its turn, for it is not known yet that nothing is kept of its records. */
static int keep_waiting(void *counted, struct input *in)
{
    (void)counted, (void)in;
    return 0;
}

static int check_memory(struct counted *c)
{
    const struct engine_opts *o = &c->opts->common;
    struct memory_plan plan;
    struct output_use use = {
        .beside = counts_memory(&c->opts->counter, 1, c->in.each->header.sam, o->n_threads, c->rings.sam.n_chunks),
    };
    return engine_memory_plan(&plan, &c->rings, o, &c->in, use, c->d->latch);
}

int counted_open(struct counted *c)
{
    const struct engine_opts *o = &c->opts->common;
    c->rings = engine_memory_rings(o, &o->in, MEMORY_AT_ONCE, false);
    c->rings.n_slices = c->rings.sink_slots = 0;
    struct inputs_options how = engine_memory_inputs(o, &o->in, &c->rings, c->d->latch, c->d->stats);
    how.keeps_broken = true;
    how.far = true;
    how.join = keep_waiting;
    return inputs_open(&c->in, &how) < 0 ? -1 : check_memory(c);
}

/* ------------------------------------------------------------------- count */

static void look(void *counted, uint32_t chunk, const uint8_t *record, uint32_t size)
{
    struct counted *c = counted;
    counts_add(c->counts, task_thread(), chunk, record, size);
}

static int looked(void *counted, uint32_t chunk)
{
    struct counted *c = counted;
    return counts_join(c->counts, chunk);
}

int counted_begin(struct counted *c)
{
    struct input *in = c->in.each;
    struct counts_options how = {
        .counters = &c->opts->counter,
        .n = 1,
        .path = in->name,
        .n_threads = c->opts->common.n_threads,
        .n_slots = c->rings.sam.n_chunks,
        .latch = c->d->latch,
    };
    c->looks = (struct look_wish){look, looked, c};
    in->looks = &c->looks;
    if (!(c->counts = counts_open(&how, in->header.sam)) || input_begin(in) < 0)
        return -1;
    c->chunks = passed_records_chunks(in->passed);
    return 0;
}

static bool is_made(void *counted)
{
    struct counted *c = counted;
    c->state = chunk_reader_advance(c->chunks);
    return c->state != CHUNK_AWAITED || latch_tripped(c->d->latch);
}

static bool help(void *counted)
{
    return chunk_reader_help(((struct counted *)counted)->chunks);
}

int counted_next(struct counted *c)
{
    progress_tick(&c->d->progress);
    task_wait(is_made, help, c, c->d->stats);
    if (c->state == CHUNK_MADE && chunk_reader_take(c->chunks, &c->spare) == 0)
        return 1;
    return c->state == CHUNK_NONE && !latch_tripped(c->d->latch) ? 0 : -1;
}

int counted_end(const struct counted *c)
{
    return chunk_reader_compare(c->chunks);
}

void counted_close(struct counted *c)
{
    inputs_close(&c->in);
    record_slice_free(&c->spare);
    counts_close(c->counts);
}
