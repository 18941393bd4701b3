/* SPDX-License-Identifier: MIT */
#include <omp.h>
#include <stdlib.h>
#include "bgzf_slot.h"
#include "latch.h"
#include "record_sink.h"
#include "run_reader.h"
#include "stats.h"

enum {
    /* A run of its own (sorted input) must keep all threads busy, while as many
     * slices wait for the sink. */
    BUFFERS_PER_THREAD = 3, BUFFERS_MIN = 2,
};

/* Memory that was used beside a buffer's home, until the sink has passed it. */
struct extra {
    struct extra *next;
    uint8_t *memory;
};

/*   FREE --the sink passed it--> READY --claim--> TAKEN --> DONE --the merge--> FREE */
struct buffer {
    atomic_int state;            /* bgzf_slot.h */
    struct spill_buffer b;       /* claimer, while TAKEN */
    struct spill_place place;    /* of the slice; master, before READY */
    bool home_is_free;           /* master, before READY */
    uint64_t mark;               /* the sink is through with it when it has passed this; master */
    struct extra *extras;        /* used since home was; master */
};

/* One run: its buffers are a ring. */
struct ring {
    struct buffer *buffers;
    size_t loaded, used;         /* slices asked for; slices given to the merge */
};

struct run_reader {
    struct run_reader_options opt;
    size_t n_buffers;            /* of each run */
    struct ring *rings;
    struct buffer *buffers;
    struct spill_loader *loaders;   /* one per thread */
    struct spill_gate gate;
};

/* Fills a buffer, unless another thread does. */
static int run_load(struct run_reader *r, struct buffer *buffer)
{
    if (!slot_claim(&buffer->state))
        return 0;
    if (!latch_tripped(r->opt.latch)
        && spill_load(r->opt.store, buffer->place, &r->loaders[omp_get_thread_num()], &buffer->b,
                      buffer->home_is_free, r->opt.latch) == 0)
        spill_store_free(r->opt.store, buffer->place);
    slot_pass(&buffer->state, SLOT_DONE);
    return 1;
}

static void begin_load(struct run_reader *r, struct ring *ring, bool home_is_free)
{
    const struct spill_run *run = &r->opt.runs[ring - r->rings];
    struct buffer *buffer = &ring->buffers[ring->loaded % r->n_buffers];
    buffer->place = run->slices[ring->loaded++];
    buffer->home_is_free = home_is_free;
    if (ring->loaded < run->n)
        spill_store_expect(r->opt.store, run->slices[ring->loaded]);
    slot_pass(&buffer->state, SLOT_READY);

    #pragma omp task default(none) firstprivate(r, buffer)
    run_load(r, buffer);
}

static void free_extras(struct buffer *buffer)
{
    while (buffer->extras) {
        struct extra *extra = buffer->extras;
        buffer->extras = extra->next;
        free(extra->memory);
        free(extra);
    }
}

/* Asks for as many slices of the ring as there are buffers that the sink is through with. */
static void load_ahead(struct run_reader *r, struct ring *ring)
{
    const struct spill_run *run = &r->opt.runs[ring - r->rings];
    while (ring->loaded < run->n) {
        struct buffer *buffer = &ring->buffers[ring->loaded % r->n_buffers];
        if (slot_state(&buffer->state) != SLOT_FREE || !record_sink_passed(r->opt.sink, buffer->mark))
            return;
        free_extras(buffer);
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
    return r->rings && r->buffers && r->loaders ? 0 : -1;
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
        load_ahead(r, &r->rings[i]);
    }
    return r;
}

void run_reader_close(struct run_reader *r)
{
    if (!r)
        return;
    for (size_t i = 0; r->buffers && i < r->opt.n_runs * r->n_buffers; i++) {
        free(r->buffers[i].b.extra);
        free_extras(&r->buffers[i]);
    }
    for (int i = 0; r->loaders && i < r->opt.n_threads; i++)
        spill_loader_free(&r->loaders[i]);
    free(r->rings);
    free(r->buffers);
    free(r->loaders);
    pthread_mutex_destroy(&r->gate.mutex);
    free(r);
}

/* The merge is through with the slice it used last. -1: no memory. */
static int retire(struct run_reader *r, struct ring *ring)
{
    struct buffer *buffer = &ring->buffers[(ring->used - 1) % r->n_buffers];
    buffer->mark = record_sink_mark(r->opt.sink);
    if (buffer->b.extra) {
        struct extra *extra = malloc(sizeof *extra);
        if (!extra)
            return latch_fail(r->opt.latch, "out of memory for temporary data");
        *extra = (struct extra){buffer->extras, buffer->b.extra};
        buffer->extras = extra;
        buffer->b.extra = NULL;
    }
    slot_pass(&buffer->state, SLOT_FREE);
    return 0;
}

/* Waits until the next slice is there, working meanwhile. */
static int wait_for(struct run_reader *r, struct ring *ring)
{
    struct buffer *buffer = &ring->buffers[ring->used % r->n_buffers];
    unsigned spins = 0;
    enum stage before = stats_enter(r->opt.stats, STAGE_WAIT);
    while (slot_state(&buffer->state) != SLOT_DONE && !latch_tripped(r->opt.latch)) {
        load_ahead(r, ring);
        /* Slices so small that all of them are in the block being filled: it is
         * filled on from other memory. */
        if (ring->loaded == ring->used && !record_sink_will_pass(r->opt.sink, buffer->mark))
            begin_load(r, ring, false);
        if (!run_load(r, buffer) && !record_sink_help(r->opt.sink))
            slot_pause(&spins);
    }
    stats_leave(r->opt.stats, before, 0);
    return latch_tripped(r->opt.latch) ? -1 : 0;
}

int run_reader_more(void *arg, size_t number, struct merge_source *source)
{
    struct run_reader *r = arg;
    if (number >= r->opt.n_runs)
        return 0;                                /* a sublist in memory */
    struct ring *ring = &r->rings[number];
    if (ring->used > 0) {
        const struct buffer *last = &ring->buffers[(ring->used - 1) % r->n_buffers];
        if (slot_state(&last->state) == SLOT_DONE && retire(r, ring) < 0)
            return -1;
    }
    for (size_t i = 0; i < r->opt.n_runs; i++)
        load_ahead(r, &r->rings[i]);
    if (ring->used == r->opt.runs[number].n)
        return 0;
    if (wait_for(r, ring) < 0)
        return -1;
    const struct spill_slice *slice = &ring->buffers[ring->used++ % r->n_buffers].b.slice;
    const struct bam_key *keys = spill_slice_keys(slice);
    *source = (struct merge_source){keys, keys + slice->n, slice->base};
    return 1;
}
