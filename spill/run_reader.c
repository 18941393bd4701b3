/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "base/latch.h"
#include "base/task_ring.h"
#include "write/record_sink.h"
#include "spill/run_reader.h"

enum {
    /* If there is only one run (sorted input), its slices must keep all threads busy while
     * as many more wait for the sink. */
    BUFFERS_PER_THREAD = 3, BUFFERS_MIN = 2,
};

/* Memory of a slice that the merge has left and that was not in a buffer's home. To be freed. */
struct extra {
    struct extra *next;
    uint8_t *memory;
    uint64_t mark;               /* free it when the sink has passed this */
    size_t beside;               /* its share of run_reader.beside */
};

/* Its slot is handed out when the sink has passed it, and released when the merge has left it. */
struct buffer {
    struct spill_buffer b;       /* used by the claimer, while TAKEN */
    struct spill_place place;    /* of the slice; this and the next three: set by the main thread before READY */
    struct spill_place next;     /* of the run's next slice, which is announced to the store ... */
    bool has_next;               /* ... if there is one */
    bool home_is_free;
    size_t beside;               /* the slice's share of run_reader.beside; main thread only */
    uint64_t mark;               /* the sink no longer uses it once it has passed this; set by the main thread */
};

/* One run: its buffers are a ring. */
struct ring {
    struct buffer *buffers;
    size_t left, loaded;         /* slices that the merge has left; slices requested; main thread only */
};

struct run_reader {
    struct run_reader_options opt;
    size_t n_buffers;            /* for each run */
    size_t beside;               /* bytes of slices larger than buffers, in memory or requested; main thread only */
    struct extra *extras;        /* left but not yet passed, the latest first; main thread only */
    struct ring *rings;
    struct buffer *buffers;
    struct task_ring tasks;      /* of all buffers, by their places in the array */
    size_t help;                 /* number of the ring that was helped last; main thread only */
    struct spill_loader *loaders;   /* one per thread */
    struct spill_gate gate;
};

/* Fills a buffer. */
static void run_load(void *reader, uint32_t index)
{
    struct run_reader *r = reader;
    struct buffer *buffer = &r->buffers[index];
    if (buffer->has_next)
        spill_store_expect(r->opt.store, buffer->next);
    if (!latch_tripped(r->opt.latch)
        && spill_load(r->opt.store, buffer->place, &r->loaders[task_thread()], &buffer->b,
                      buffer->home_is_free, r->opt.latch) == 0)
        spill_store_free(r->opt.store, buffer->place);
}

static uint32_t slot_of(const struct run_reader *r, const struct buffer *buffer)
{
    return (uint32_t)(buffer - r->buffers);
}

static enum task_state state_of(const struct run_reader *r, const struct buffer *buffer)
{
    return task_ring_state(&r->tasks, slot_of(r, buffer));
}

/* Bytes in memory, about, of a slice that is larger than a buffer; else 0. */
static size_t size_beside(const struct run_reader *r, struct spill_place place)
{
    enum { PACKED_RATIO = 2 };
    return place.size > r->opt.slice_size ? (size_t)place.size * PACKED_RATIO : 0;
}

static void begin_load(struct run_reader *r, struct ring *ring, bool home_is_free)
{
    const struct spill_run *run = &r->opt.runs[ring - r->rings];
    struct buffer *buffer = &ring->buffers[ring->loaded % r->n_buffers];
    buffer->place = run->slices[ring->loaded++];
    buffer->beside = size_beside(r, buffer->place);
    r->beside += buffer->beside;
    buffer->home_is_free = home_is_free;
    buffer->has_next = ring->loaded < run->n;
    if (buffer->has_next)
        buffer->next = run->slices[ring->loaded];
    task_ring_submit(&r->tasks, slot_of(r, buffer));
}

/* Marks only grow. So if one is passed, all in the list after it are passed too. */
static void free_extras(struct run_reader *r, bool all)
{
    struct extra **at = &r->extras;
    while (*at && !all && !record_sink_passed(r->opt.sink, (*at)->mark))
        at = &(*at)->next;
    while (*at) {
        struct extra *extra = *at;
        *at = extra->next;
        r->beside -= extra->beside;
        free(extra->memory);
        free(extra);
    }
}

static struct buffer *buffer_of(const struct run_reader *r, const struct ring *ring, size_t slice)
{
    return &ring->buffers[slice % r->n_buffers];
}

static bool is_free(const struct run_reader *r, const struct buffer *buffer)
{
    return state_of(r, buffer) == TASK_FREE && record_sink_passed(r->opt.sink, buffer->mark);
}

/* Requests slices of the ring for all buffers that the sink has passed. Slices larger than a buffer take memory beside
 * the buffers; until they are needed they are requested only while all of them take at most half of memory_size. */
static void load_ahead(struct run_reader *r, struct ring *ring, size_t needed)
{
    const struct spill_run *run = &r->opt.runs[ring - r->rings];
    while (ring->loaded < run->n) {
        struct buffer *buffer = buffer_of(r, ring, ring->loaded);
        size_t beside = size_beside(r, run->slices[ring->loaded]);
        if (!is_free(r, buffer)
            || (beside && r->beside + beside > r->opt.memory_size / 2 && ring->loaded != needed))
            return;
        begin_load(r, ring, true);
    }
}

static int alloc_all(struct run_reader *r)
{
    const struct run_reader_options *o = &r->opt;
    size_t most = BUFFERS_MIN + BUFFERS_PER_THREAD * (size_t)o->n_threads;
    r->n_buffers = o->memory_size / o->slice_size / o->n_runs;
    r->n_buffers = r->n_buffers > most ? most : r->n_buffers;
    r->rings = calloc(o->n_runs + 1, sizeof *r->rings);
    r->buffers = calloc(o->n_runs * r->n_buffers + 1, sizeof *r->buffers);
    r->loaders = calloc((size_t)o->n_threads, sizeof *r->loaders);
    for (int i = 0; r->loaders && i < o->n_threads; i++)
        r->loaders[i].gate = &r->gate;
    struct task_ring_options tasks = {.n_slots = (uint32_t)(o->n_runs * r->n_buffers), .run = run_load, .arg = r};
    return r->rings && r->buffers && r->loaders && task_ring_open(&r->tasks, &tasks) == 0 ? 0 : -1;
}

struct run_reader *run_reader_open(const struct run_reader_options *options)
{
    struct run_reader *r = calloc(1, sizeof *r);
    if (r) {
        r->opt = *options;
        r->gate.large = options->large;
        pthread_mutex_init(&r->gate.mutex, NULL);
    }
    if (!r || options->memory_size / (BUFFERS_MIN * options->slice_size) < options->n_runs || alloc_all(r) < 0) {
        latch_fail(options->latch, "too little memory for temporary data");
        run_reader_close(r);
        return NULL;
    }
    for (size_t i = 0; i < r->opt.n_runs * r->n_buffers; i++) {
        r->buffers[i].b.home = r->opt.memory + i * r->opt.slice_size;
        r->buffers[i].b.home_size = r->opt.slice_size;
    }
    for (size_t i = 0; i < r->opt.n_runs; i++) {
        r->rings[i].buffers = &r->buffers[i * r->n_buffers];
        load_ahead(r, &r->rings[i], 0);
    }
    return r;
}

void run_reader_close(struct run_reader *r)
{
    if (!r)
        return;
    for (size_t i = 0; r->buffers && i < r->opt.n_runs * r->n_buffers; i++)
        free(r->buffers[i].b.extra);
    free_extras(r, true);
    for (int i = 0; r->loaders && i < r->opt.n_threads; i++)
        spill_loader_free(&r->loaders[i]);
    task_ring_close(&r->tasks, !latch_tripped(r->opt.latch));
    free(r->rings);
    free(r->buffers);
    free(r->loaders);
    pthread_mutex_destroy(&r->gate.mutex);
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

static bool is_ready(void *reader, size_t run, size_t slice, bool idle)
{
    struct run_reader *r = reader;
    struct ring *ring = &r->rings[run];
    struct buffer *buffer = buffer_of(r, ring, slice);
    load_ahead(r, ring, slice);
    /* The slices are so small that the block being filled has records of all that are in buffers. The
     * sink cannot pass them before that block is full, so the next slice goes to other memory. */
    if (idle && ring->loaded == slice && state_of(r, buffer) == TASK_FREE
        && !record_sink_will_pass(r->opt.sink, buffer->mark))
        begin_load(r, ring, false);
    return ring->loaded > slice && state_of(r, buffer) == TASK_DONE && !latch_tripped(r->opt.latch);
}

static struct merge_source keys_of(const void *reader, size_t run, size_t slice)
{
    const struct run_reader *r = reader;
    const struct spill_slice *s = &buffer_of(r, &r->rings[run], slice)->b.slice;
    const struct bam_key *keys = spill_slice_keys(s);
    return (struct merge_source){keys, keys + s->n, s->base};
}

/* -1: no memory, and the error is recorded in the latch. */
static int leave_buffer(struct run_reader *r, struct buffer *buffer)
{
    buffer->mark = record_sink_mark(r->opt.sink);
    if (buffer->b.extra) {
        struct extra *extra = malloc(sizeof *extra);
        if (!extra)
            return latch_fail(r->opt.latch, "out of memory for temporary data");
        *extra = (struct extra){r->extras, buffer->b.extra, buffer->mark, buffer->beside};
        r->extras = extra;
        buffer->b.extra = NULL;
    } else {
        r->beside -= buffer->beside;
    }
    task_ring_release(&r->tasks, slot_of(r, buffer));
    return 0;
}

static int leave(void *reader, size_t run, size_t slice)
{
    struct run_reader *r = reader;
    struct ring *ring = &r->rings[run];
    for (; ring->left < slice; ring->left++)
        if (leave_buffer(r, buffer_of(r, ring, ring->left)) < 0)
            return -1;
    return 0;
}

static void refill(void *reader)
{
    struct run_reader *r = reader;
    free_extras(r, false);
    for (size_t i = 0; i < r->opt.n_runs; i++)
        load_ahead(r, &r->rings[i], SIZE_MAX);
}

static bool help(void *reader)
{
    struct run_reader *r = reader;
    for (size_t i = 0; i < r->opt.n_runs; i++, r->help++) {
        struct ring *ring = &r->rings[r->help % r->opt.n_runs];
        for (size_t slice = ring->left; slice < ring->loaded; slice++)
            if (task_ring_run(&r->tasks, slot_of(r, buffer_of(r, ring, slice))))
                return true;
    }
    return false;
}

struct merge_runs run_reader_runs(struct run_reader *r)
{
    return (struct merge_runs){
        .n = r->opt.n_runs,
        .n_buffers = r->n_buffers,
        .reader = r,
        .first_key = first_key,
        .ready = is_ready,
        .slice = keys_of,
        .leave = leave,
        .refill = refill,
        .help = help,
    };
}
