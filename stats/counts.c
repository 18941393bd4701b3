/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include "base/clocks.h"
#include "base/engine.h"
#include "base/latch.h"
#include "base/task_ring.h"
#include "stats/counts.h"

/* The sums and parts of one counter. */
struct tallied {
    void **sums;                 /* one for each thread, which alone uses it until everything is counted; NULL: not yet
                                  * made */
    void **parts;                /* one for each slot, then the joined one; NULL: not yet made */
};

/* Each slot of the ring joins the sums of two threads, see join_sums(). */
struct counts {
    struct counts_options opt;
    struct task_ring joins;
    size_t joining;              /* index of the counter whose sums are joined; written by the main thread, while no
                                  * slot is handed out, as is the next field */
    uint32_t distance;           /* between the two threads */
    struct tallied each[];       /* opt.n */
};

/* Returns the number of pairs of n threads. */
static uint32_t pairs_of(int n_threads)
{
    return (uint32_t)n_threads / 2;
}

static int fail_memory(const struct counts *c, const struct counter *counter)
{
    return latch_fail(c->opt.engine->latch, "%s: out of memory for %s", c->opt.path, counter->command);
}

static void join_pair(void *counts, uint32_t slot);

static int open_joins(struct counts *c)
{
    struct task_ring_options how = {.n_slots = pairs_of(c->opt.engine->n_threads), .run = join_pair, .arg = c};
    return task_ring_open(&c->joins, &how) < 0 ? latch_fail(c->opt.engine->latch, "%s: out of memory", c->opt.path) : 0;
}

static int open_each(struct counts *c, sam_hdr_t *sam, const struct ref_regions *regions)
{
    for (size_t i = 0; i < c->opt.n; i++) {
        const struct counter *counter = &c->opt.counters[i];
        struct tallied *t = &c->each[i];
        t->sums = calloc((size_t)c->opt.engine->n_threads, sizeof *t->sums);
        t->parts = calloc((size_t)c->opt.n_slots + 1, sizeof *t->parts);
        if (!t->sums || !t->parts)
            return fail_memory(c, counter);
        if (counter->begin && counter->begin(counter->settings, sam, regions, c->opt.engine->latch) < 0)
            return -1;
    }
    return 0;
}

struct counts *counts_open(const struct counts_options *options, sam_hdr_t *sam, const struct ref_regions *regions)
{
    struct counts *c = calloc(1, sizeof *c + options->n * sizeof *c->each);
    if (!c) {
        latch_fail(options->engine->latch, "%s: out of memory", options->path);
        return NULL;
    }
    c->opt = *options;
    if (open_joins(c) == 0 && open_each(c, sam, regions) == 0)
        return c;
    counts_close(c);
    return NULL;
}

static void close_stores(const struct counter_store *store, void **stores, size_t n)
{
    for (size_t i = 0; stores && i < n; i++)
        if (stores[i])
            store->close(stores[i]);
    free(stores);
}

void counts_close(struct counts *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->opt.n; i++) {
        close_stores(&c->opt.counters[i].sums, c->each[i].sums, (size_t)c->opt.engine->n_threads);
        close_stores(&c->opt.counters[i].part, c->each[i].parts, (size_t)c->opt.n_slots + 1);
    }
    task_ring_close(&c->joins, true);
    free(c);
}

/* Makes the state at *kept when it is first needed. Returns -1 if out of memory. */
static int equip(const struct counter *counter, const struct counter_store *store, void **kept)
{
    return *kept || !store->open || (*kept = store->open(counter->settings)) ? 0 : -1;
}

void counts_add(struct counts *c, int thread, uint32_t slot, const uint8_t *record, uint32_t size)
{
    for (size_t i = 0; i < c->opt.n; i++) {
        const struct counter *counter = &c->opt.counters[i];
        struct tallied *t = &c->each[i];
        if (equip(counter, &counter->sums, &t->sums[thread]) < 0 || equip(counter, &counter->part, &t->parts[slot]) < 0)
            fail_memory(c, counter);
        else
            counter->add(t->sums[thread], t->parts[slot], record, size);
    }
}

void counts_add_joined(struct counts *c, int thread, const uint8_t *record, uint32_t size)
{
    counts_add(c, thread, c->opt.n_slots, record, size);
}

bool counts_in_sequence(const struct counter *counters, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (counters[i].in_sequence && counters[i].in_sequence(counters[i].settings))
            return true;
    return false;
}

/* Reports the first fault of the records joined so far. */
static int check(const struct counts *c, const struct counter *counter, const void *joined)
{
    uint64_t record;
    const char *fault = counter->fault ? counter->fault(joined, &record) : NULL;
    return !fault ? 0 : latch_fail(c->opt.engine->latch, "%s: record %" PRIu64 ": %s", c->opt.path, record + 1, fault);
}

int counts_join(struct counts *c, uint32_t slot)
{
    for (size_t i = 0; i < c->opt.n; i++) {
        const struct counter *counter = &c->opt.counters[i];
        void **parts = c->each[i].parts, **joined = &parts[c->opt.n_slots];
        if (!parts[slot])                        /* no record was counted there */
            continue;
        if (equip(counter, &counter->part, joined) < 0 || counter->part.join(*joined, parts[slot]) < 0)
            return fail_memory(c, counter);
        if (check(c, counter, *joined) < 0)
            return -1;
    }
    return 0;
}

bool counts_pair(struct counts *c, uint32_t left, uint32_t last, uint32_t right)
{
    for (size_t i = 0; i < c->opt.n; i++) {
        const struct counter *counter = &c->opt.counters[i];
        void **parts = c->each[i].parts;
        if (counter->pair)                       /* no other one: it may take other parts, and `last` would differ */
            return parts[left] && parts[last] && parts[right] && counter->pair(parts[left], parts[last], parts[right]);
    }
    return false;
}

int counts_check(const struct counts *c)
{
    for (size_t i = 0; i < c->opt.n; i++) {
        const void *joined = c->each[i].parts[c->opt.n_slots];
        if (joined && check(c, &c->opt.counters[i], joined) < 0)
            return -1;
    }
    return 0;
}

/* Joins the sums of the pair with this number, which become those of its first thread. */
static void join_pair(void *counts, uint32_t slot)
{
    const struct counts *c = counts;
    const struct counter *counter = &c->opt.counters[c->joining];
    void **left = &c->each[c->joining].sums[2 * slot * c->distance], **right = left + c->distance, *from = *right;
    enum stage before = clocks_enter(c->opt.engine->clocks, STAGE_JOIN);
    *right = NULL;
    if (!*left)
        *left = from;
    else if (from && counter->sums.join(*left, from) < 0)
        fail_memory(c, counter);
    if (from && from != *left)
        counter->sums.close(from);
    clocks_leave(c->opt.engine->clocks, before, 0);
}

/* Joins the sums of all threads: tasks join those of neighbours, then those of every second thread, and so on. With
 * 64 threads the main thread waits for 6 joins. */
static int join_sums(struct counts *c, size_t i)
{
    const struct counter *counter = &c->opt.counters[i];
    const struct engine *engine = c->opt.engine;
    c->joining = i;
    for (c->distance = 1; c->distance < (uint32_t)engine->n_threads; c->distance *= 2) {
        uint32_t n = ((uint32_t)engine->n_threads + c->distance - 1) / (2 * c->distance);
        for (uint32_t slot = 0; slot < n; slot++)
            task_ring_submit(&c->joins, slot);
        for (uint32_t slot = 0; slot < n; slot++) {
            if (!task_ring_run(&c->joins, slot))
                task_ring_wait(&c->joins, slot, TASK_DONE, NULL, engine->clocks);
            task_ring_release(&c->joins, slot);
        }
    }
    return latch_tripped(engine->latch) ? -1
         : equip(counter, &counter->sums, &c->each[i].sums[0]) < 0
           || equip(counter, &counter->part, &c->each[i].parts[c->opt.n_slots]) < 0 ? fail_memory(c, counter) : 0;
}

int counts_print(struct counts *c, size_t i, FILE *out)
{
    return join_sums(c, i) < 0 ? -1
         : c->opt.counters[i].print(c->each[i].sums[0], c->each[i].parts[c->opt.n_slots], out, c->opt.engine->latch);
}

int counts_files(struct counts *c, size_t i, size_t *n)
{
    const struct counter_files *files = &c->opt.counters[i].files;
    *n = 0;
    if (!files->n)
        return 0;
    if (join_sums(c, i) < 0)
        return -1;
    *n = files->n(c->each[i].sums[0]);
    return 0;
}

char *counts_file_path(const struct counts *c, size_t i, size_t file)
{
    const struct counter *counter = &c->opt.counters[i];
    char *path = counter->files.path(counter->settings, c->each[i].sums[0], file);
    if (!path)
        fail_memory(c, counter);
    return path;
}

int counts_file_print(struct counts *c, size_t i, size_t file, FILE *out)
{
    return c->opt.counters[i].files.print(c->each[i].sums[0], c->each[i].parts[c->opt.n_slots], file, out,
                                          c->opt.engine->latch);
}

struct counter_numbers counts_numbers(const struct counts *c)
{
    struct counter_numbers numbers = {.of = NULL};
    for (size_t i = 0; i < c->opt.n && !numbers.of; i++)
        if (c->opt.counters[i].numbers) {
            c->opt.counters[i].numbers(c->each[i].sums[0], &numbers);
            numbers.of = c->opt.counters[i].command;
        }
    return numbers;
}

size_t counts_memory(const struct counter *counters, size_t n, sam_hdr_t *sam, int n_threads, uint32_t n_slots,
                     size_t range)
{
    size_t bytes = n > 0 ? task_ring_memory(pairs_of(n_threads)) : 0;
    for (size_t i = 0; i < n; i++) {
        const struct counter *counter = &counters[i];
        if (counter->sums.open)
            bytes += (size_t)n_threads * counter->sums.memory(counter->settings, sam, range);
        if (counter->part.open)
            bytes += ((size_t)n_slots + 1) * counter->part.memory(counter->settings, sam, range);
        if (counter->whole_memory)
            bytes += counter->whole_memory(counter->settings, sam);
    }
    return bytes;
}
