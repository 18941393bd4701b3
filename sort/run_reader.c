/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "base/engine.h"
#include "base/latch.h"
#include "base/task_ring.h"
#include "write/record_sink.h"
#include "sort/run_reader.h"

enum {
    /* If there is only one run (sorted input), its slices must keep all threads busy while an equal number of slices
     * waits for the sink. */
    BUFFERS_PER_THREAD = 3, BUFFERS_MIN = 2,
};

/* Memory, outside of a buffer's home, of a slice that the merge has left. It is to be freed. */
struct extra {
    struct extra *next;
    struct spill_extra memory;
    uint64_t mark;               /* freed when the sink has passed this */
    size_t beside;               /* its share of run_reader.beside */
};

/* A buffer for slices of a run. Its slot is handed out when the sink has passed the buffer, and released when the merge
 * has left the buffer. */
struct slice_buffer {
    struct spill_buffer b;       /* used by the claimer, while TAKEN */
    const struct spill_place *place;   /* place of the slice; this field and the next two: set by the main thread before
                                        * READY */
    bool announces;              /* the next slice of the run has to wait for a buffer, so it is announced to the
                                  * store */
    bool home_is_free;
    bool partial;                /* only the fields of a large record that are compared are loaded: see fill(). Set by
                                  * the main thread before READY, and cleared by the main thread */
    uint64_t mark;               /* the sink no longer uses it once it has passed this; set by the main thread */
};

/* The progress of the merge in a run. Main thread only. */
struct run_state {
    size_t left, loaded;         /* number of slices that the merge has left, and of slices requested */
};

struct run_reader {
    struct run_reader_options opt;
    size_t n_buffers;            /* for each run */
    size_t beside;               /* bytes of slices that are larger than buffers, in memory or requested; main thread
                                  * only */
    struct extra *extras;        /* left but not yet passed, the latest first; main thread only */
    struct run_state *runs;
    struct slice_buffer *buffers; /* n_buffers for each run, used in turn */
    struct task_ring tasks;      /* slots of all buffers, by their places in the array */
    struct task_batch batch;     /* requests that have no task yet; main thread only */
    size_t help;                 /* number of the run that was helped last; main thread only */
    struct spill_loader *loaders;   /* one per thread */
};

/* Loads a slice into a buffer. */
static void run_load(void *reader, uint32_t index)
{
    struct run_reader *r = reader;
    struct slice_buffer *buffer = &r->buffers[index];
    if (buffer->announces)
        spill_store_expect(r->opt.store, buffer->place[1]);
    if (latch_tripped(r->opt.engine->latch))
        return;
    if (buffer->partial)
        spill_load_head(r->opt.store, *buffer->place, &buffer->b, false, r->opt.engine->latch);
    else if (spill_load(r->opt.store, *buffer->place, &r->loaders[task_thread()], &buffer->b, buffer->home_is_free,
                        r->opt.engine->latch) == 0 && !r->opt.keeps)
        spill_store_free(r->opt.store, *buffer->place);
}

/* Returns the number of a slice's buffer, which is also the number of its slot. */
static uint32_t slot_of(const struct run_reader *r, size_t run, size_t slice)
{
    return (uint32_t)(run * r->n_buffers + slice % r->n_buffers);
}

/* Estimates the bytes in memory of a slice that is larger than a buffer; 0 for other slices. */
static size_t size_beside(const struct run_reader *r, struct spill_place place)
{
    enum { PACKED_RATIO = 2 };
    return place.size > r->opt.slice_size ? (size_t)place.size * PACKED_RATIO : 0;
}

/* Returns whether `beside` more bytes outside of the buffers would be too many. */
static bool is_over(const struct run_reader *r, size_t beside)
{
    return beside > 0 && r->beside + beside > r->opt.memory_size / 2;
}

/* Returns whether the slice may be loaded in part: only a large record that is not packed has a head that can be read
 * alone. */
static bool may_be_partial(const struct run_reader *r, struct spill_place place)
{
    return r->opt.compares && place.hash != 0;
}

/* Requests the next slice of the run. A slice that is announced after its space was given back would be read again, as
 * zeros. */
static void begin_load(struct run_reader *r, size_t run, bool home_is_free)
{
    size_t slice = r->runs[run].loaded++;
    uint32_t slot = slot_of(r, run, slice);
    struct slice_buffer *buffer = &r->buffers[slot];
    buffer->place = &r->opt.runs[run].slices[slice];
    buffer->announces = slice + 1 < r->opt.runs[run].n
                     && task_ring_state(&r->tasks, slot_of(r, run, slice + 1)) != TASK_FREE;
    buffer->home_is_free = home_is_free;
    size_t beside = size_beside(r, *buffer->place);
    buffer->partial = may_be_partial(r, *buffer->place) && is_over(r, beside);
    r->beside += buffer->partial ? 0 : beside;
    task_ring_add(&r->tasks, &r->batch, slot);
}

/* Frees the extras that the sink has passed, or all. Marks only grow, so if an extra is passed, all extras after it in
 * the list are passed too. */
static void free_extras(struct run_reader *r, bool all)
{
    struct extra **at = &r->extras;
    while (*at && !all && !record_sink_passed(r->opt.sink, (*at)->mark))
        at = &(*at)->next;
    while (*at) {
        struct extra *extra = *at;
        *at = extra->next;
        r->beside -= extra->beside;
        spill_extra_free(&extra->memory);
        free(extra);
    }
}

/* Requests slices of the run for all buffers that the sink has passed. Slices larger than a buffer take memory outside
 * of the buffers. Until they are needed, they are requested only while all of them together take at most half of
 * memory_size. If records are compared, more of these slices are loaded, without bases and qualities. */
static void load_ahead(struct run_reader *r, size_t run, size_t needed)
{
    const struct spill_run *from = &r->opt.runs[run];
    for (size_t slice; (slice = r->runs[run].loaded) < from->n; begin_load(r, run, true)) {
        uint32_t slot = slot_of(r, run, slice);
        size_t beside = size_beside(r, from->slices[slice]);
        if (task_ring_state(&r->tasks, slot) != TASK_FREE || !record_sink_passed(r->opt.sink, r->buffers[slot].mark)
            || (is_over(r, beside) && slice != needed && !may_be_partial(r, from->slices[slice])))
            return;
    }
}

static int alloc_all(struct run_reader *r)
{
    const struct run_reader_options *o = &r->opt;
    size_t most = BUFFERS_MIN + BUFFERS_PER_THREAD * (size_t)o->engine->n_threads;
    r->n_buffers = o->memory_size / o->slice_size / o->n_runs;
    r->n_buffers = r->n_buffers > most ? most : r->n_buffers;
    r->runs = calloc(o->n_runs + 1, sizeof *r->runs);
    r->buffers = calloc(o->n_runs * r->n_buffers + 1, sizeof *r->buffers);
    r->loaders = calloc((size_t)o->engine->n_threads, sizeof *r->loaders);
    struct task_ring_options tasks = {
        .n_slots = (uint32_t)(o->n_runs * r->n_buffers),
        .n_threads = (o->engine->n_threads + 1) / 2,     /* slices are read ahead, so batches may be large */
        .run = run_load,
        .arg = r,
    };
    return r->runs && r->buffers && r->loaders && task_ring_open(&r->tasks, &tasks) == 0 ? 0 : -1;
}

struct run_reader *run_reader_open(const struct run_reader_options *options)
{
    struct run_reader *r = calloc(1, sizeof *r);
    if (r)
        r->opt = *options;
    if (!r || options->memory_size / (BUFFERS_MIN * options->slice_size) < options->n_runs || alloc_all(r) < 0) {
        latch_fail(options->engine->latch, "too little memory for temporary data");
        run_reader_close(r);
        return NULL;
    }
    for (size_t i = 0; i < r->opt.n_runs * r->n_buffers; i++) {
        r->buffers[i].b.home = r->opt.memory + i * r->opt.slice_size;
        r->buffers[i].b.home_size = r->opt.slice_size;
    }
    for (size_t i = 0; i < r->opt.n_runs; i++)
        load_ahead(r, i, SIZE_MAX);
    return r;
}

void run_reader_close(struct run_reader *r)
{
    if (!r)
        return;
    for (size_t i = 0; r->buffers && i < r->opt.n_runs * r->n_buffers; i++)
        spill_extra_free(&r->buffers[i].b.extra);
    free_extras(r, true);
    for (int i = 0; r->loaders && i < r->opt.engine->n_threads; i++)
        spill_loader_free(&r->loaders[i]);
    task_ring_close(&r->tasks, !latch_tripped(r->opt.engine->latch));
    free(r->runs);
    free(r->buffers);
    free(r->loaders);
    free(r);
}

/* ------------------------------------------------------- struct merge_runs */

static bool first_key(const void *reader, size_t run, size_t slice, uint64_t *key)
{
    const struct run_reader *r = reader;
    const struct spill_run *from = &r->opt.runs[run];
    if (slice == from->n)
        return false;
    *key = from->slices[slice].first_key;
    return true;
}

/* Returns whether memory of slices that the merge has left will be free when the sink has passed them. */
static bool frees_soon(struct run_reader *r)
{
    free_extras(r, false);
    for (const struct extra *extra = r->extras; extra; extra = extra->next)
        if (record_sink_will_pass(r->opt.sink, extra->mark))
            return true;
    return false;
}

static bool is_ready(void *reader, size_t run, size_t slice, bool idle)
{
    struct run_reader *r = reader;
    uint32_t slot = slot_of(r, run, slice);
    load_ahead(r, run, idle && !frees_soon(r) ? slice : SIZE_MAX);
    /* The block being filled has records of all slices in buffers, and the sink cannot pass them before it is full. So
     * the next slice is loaded to other memory. */
    if (idle && r->runs[run].loaded == slice && task_ring_state(&r->tasks, slot) == TASK_FREE
        && !record_sink_will_pass(r->opt.sink, r->buffers[slot].mark))
        begin_load(r, run, false);
    if (r->runs[run].loaded > slice && task_ring_state(&r->tasks, slot) == TASK_DONE)
        return !latch_tripped(r->opt.engine->latch);
    task_ring_submit_batch(&r->tasks, &r->batch);    /* because the slice is needed now */
    return false;
}

static struct merge_way keys_of(const void *reader, size_t run, size_t slice)
{
    const struct run_reader *r = reader;
    const struct spill_slice *s = &r->buffers[slot_of(r, run, slice)].b.slice;
    const struct bam_key *keys = spill_slice_keys(s);
    return (struct merge_way){keys, keys + s->n, s->base};
}

/* -1: out of memory, and the error is recorded in the latch. */
static int leave_buffer(struct run_reader *r, uint32_t slot)
{
    struct slice_buffer *buffer = &r->buffers[slot];
    size_t beside = size_beside(r, *buffer->place);
    buffer->mark = record_sink_mark(r->opt.sink);
    if (buffer->b.extra.memory) {
        struct extra *extra = malloc(sizeof *extra);
        if (!extra)
            return latch_fail(r->opt.engine->latch, "out of memory for temporary data");
        *extra = (struct extra){r->extras, buffer->b.extra, buffer->mark, beside};
        r->extras = extra;
        buffer->b.extra = (struct spill_extra){NULL, 0};
    } else {
        r->beside -= beside;
    }
    task_ring_release(&r->tasks, slot);
    return 0;
}

static int leave(void *reader, size_t run, size_t slice)
{
    struct run_reader *r = reader;
    for (size_t *left = &r->runs[run].left; *left < slice; ++*left)
        if (leave_buffer(r, slot_of(r, run, *left)) < 0)
            return -1;
    return 0;
}

static bool is_partial(const void *reader, size_t run, size_t slice)
{
    const struct run_reader *r = reader;
    return r->buffers[slot_of(r, run, slice)].partial;
}

/* Loads the rest of a slice. 0: not yet, because memory that was used before is about to become free. */
static int fill_buffer(struct run_reader *r, struct slice_buffer *buffer)
{
    size_t beside = size_beside(r, *buffer->place);
    if (frees_soon(r) && is_over(r, beside))
        return 0;
    if (spill_load_body(r->opt.store, *buffer->place, &buffer->b) < 0)
        return -1;
    buffer->partial = false;
    r->beside += beside;
    if (!r->opt.keeps)
        spill_store_free(r->opt.store, *buffer->place);
    return 1;
}

static int fill(void *reader, size_t run, size_t end)
{
    struct run_reader *r = reader;
    int filled = 1;
    for (size_t slice = r->runs[run].left; slice < end && filled > 0; slice++)
        if (is_partial(r, run, slice))
            filled = fill_buffer(r, &r->buffers[slot_of(r, run, slice)]);
    return filled;
}

static void refill(void *reader)
{
    struct run_reader *r = reader;
    free_extras(r, false);
    for (size_t i = 0; i < r->opt.n_runs; i++)
        load_ahead(r, i, SIZE_MAX);
}

static bool help(void *reader)
{
    struct run_reader *r = reader;
    for (size_t i = 0; i < r->opt.n_runs; i++, r->help++) {
        size_t run = r->help % r->opt.n_runs;
        for (size_t slice = r->runs[run].left; slice < r->runs[run].loaded; slice++)
            if (task_ring_run(&r->tasks, slot_of(r, run, slice)))
                return true;
    }
    return false;
}

struct merge_runs run_reader_runs(struct run_reader *r)
{
    bool large = false;
    for (size_t i = 0; i < r->opt.n_runs; i++)
        large = large || r->opt.runs[i].largest > r->opt.slice_size;
    return (struct merge_runs){
        .n = r->opt.n_runs,
        .n_buffers = r->n_buffers,
        .one_is_enough = large,
        .reader = r,
        .first_key = first_key,
        .ready = is_ready,
        .slice = keys_of,
        .is_partial = large ? is_partial : NULL,
        .fill = fill,
        .leave = leave,
        .refill = refill,
        .help = help,
    };
}
