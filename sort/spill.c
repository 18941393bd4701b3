/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "base/byte_buffer.h"
#include "base/engine.h"
#include "base/latch.h"
#include "sort/run_cut.h"
#include "order/sort_key.h"
#include "sort/spill.h"
#include "base/clocks.h"
#include "base/task_ring.h"

enum {
    /* Enough ranges for threads to share them evenly, but few enough that the last, partly filled slice of each range
     * does not matter. */
    RANGES_PER_THREAD = 8,
    SLICES_PER_RANGE = 4,        /* slices of a range, at least */
    SAMPLES_PER_RANGE = 32,      /* keys per range, so that ranges are of about equal size */
    SLICES_LEAST = 4,            /* slices of the last merge: two for each of two runs. If necessary, more memory is
                                  * taken */
    AHEAD = 16,                  /* records fetched into the cache before they are copied */
};

/* The part of the arena that one task writes: a range of the order. */
struct arena_range {
    struct run_cut from;         /* beginning of the range (unused in range 0); set by the thread that cuts the
                                  * ranges */
    struct spill_run run;        /* set by the claimer before DONE */
};

/* Adjacent runs that become one. Main thread only. */
struct merging_runs {
    size_t first, n;             /* the runs: n of them, from `first` on */
    struct spill_run *runs;      /* copies of them, since the list may move */
    size_t n_ranges;              /* ranges of the order, each merged by a task; 0: no merging is under way */
};

/* The part of all runs that one task merges: a range of the order. */
struct merge_range {
    struct spill_merge how;      /* set by the main thread, except for loader and writer */
    struct spill_run into;       /* set by the claimer before DONE */
    int result;                  /* result of spill_merge(); set by the claimer before DONE */
};

/* Memory for slices of runs that are merged, at a multiple of 16. */
struct room {
    uint8_t *memory;
    size_t n_slices, slice_size;
};

/* The buffers with which one thread writes and loads slices. They are made when the thread first needs them. */
struct workspace {
    struct spill_packer *packer;
    struct spill_loader loader;
};

struct spill {
    struct spill_options opt;
    size_t slice_size, fan_in;   /* see spill_set_sizes() */
    struct workspace *work;      /* one per thread */
    const struct bam_arena *arena;   /* the arena that is being spilled; set by the main thread */
    const struct sort_rule *rule;   /* compares records of equal keys; NULL: they are not compared; set by the
                                     * main thread, with the arena */
    struct arena_range *ranges;
    struct task_ring range_tasks;   /* ring of the ranges, from the first one on for each arena; handed out by the
                                     * thread that cuts them */
    size_t max_ranges;
    struct bam_key *samples;
    _Atomic size_t n_ranges;     /* 0 until they are cut; set by the thread that cuts them */
    size_t n_done;               /* ranges before this one are written, and their slots FREE; main thread only */
    size_t help;                 /* no range before this one is READY; main thread only */
    struct spill_run *runs;      /* main thread only, as all fields below */
    size_t n_runs, max_runs;
    struct bam_key last_key;     /* key of the latest run's last record */
    struct byte_buffer last_record;   /* that record itself; n is 0 if the record is large or is not compared */
    struct merging_runs merging;
    struct merge_range *merge_ranges;   /* ranges of the merging; one per thread */
    struct task_ring merge_tasks;   /* ring of these ranges; a slot is FREE while there is no range in it */
    uint8_t *memory;             /* for merging in the background */
    atomic_bool cancelled;       /* the merging is no longer wanted; set by the main thread, read by its tasks */
};

size_t spill_memory(int n_threads, size_t slice_size)
{
    return (size_t)n_threads * (spill_packer_memory(slice_size) + spill_loader_memory(slice_size) + slice_size);
}

static void run_range(void *spill, uint32_t number);
static void run_merge_range(void *spill, uint32_t number);

struct spill *spill_open(const struct spill_options *options)
{
    struct spill *p = calloc(1, sizeof *p);
    if (p) {
        size_t n = (size_t)options->engine->n_threads;
        p->opt = *options;
        p->max_ranges = n * RANGES_PER_THREAD;
        struct task_ring_options ranges = {.n_slots = (uint32_t)p->max_ranges, .run = run_range, .arg = p};
        struct task_ring_options merges = {.n_slots = (uint32_t)n, .run = run_merge_range, .arg = p};
        p->work = calloc(n, sizeof *p->work);
        p->merge_ranges = calloc(n, sizeof *p->merge_ranges);
        p->ranges = calloc(p->max_ranges, sizeof *p->ranges);
        p->samples = calloc(p->max_ranges * SAMPLES_PER_RANGE, sizeof *p->samples);
        if (p->work && p->merge_ranges && p->ranges && p->samples && task_ring_open(&p->range_tasks, &ranges) == 0
            && task_ring_open(&p->merge_tasks, &merges) == 0)
            return p;
    }
    latch_fail(options->engine->latch, "out of memory");
    spill_close(p);
    return NULL;
}

void spill_close(struct spill *p)
{
    if (!p)
        return;
    for (int i = 0; p->work && i < p->opt.engine->n_threads; i++) {
        spill_packer_free(p->work[i].packer);
        spill_loader_free(&p->work[i].loader);
    }
    for (size_t i = 0; p->ranges && i < p->max_ranges; i++)
        spill_run_free(&p->ranges[i].run);
    for (int i = 0; p->merge_ranges && i < p->opt.engine->n_threads; i++)
        spill_run_free(&p->merge_ranges[i].into);
    for (size_t i = 0; i < p->n_runs; i++)
        spill_run_free(&p->runs[i]);
    task_ring_close(&p->range_tasks, !latch_tripped(p->opt.engine->latch));
    task_ring_close(&p->merge_tasks, !latch_tripped(p->opt.engine->latch));
    free(p->work);
    free(p->ranges);
    free(p->samples);
    free(p->merge_ranges);
    free(p->merging.runs);
    free(p->runs);
    free(p->last_record.p);
    free(p->memory);
    free(p);
}

void spill_set_sizes(struct spill *p, size_t slice_size, size_t fan_in)
{
    p->slice_size = slice_size;
    p->fan_in = fan_in;
}

const struct bam_arena *spill_arena(const struct spill *p)
{
    return p->arena;
}

const struct spill_run *spill_runs(const struct spill *p, size_t *n)
{
    *n = p->n_runs;
    return p->runs;
}

bool spill_compares(const struct spill *p)
{
    return p->rule != NULL;
}

/* The calling thread's workspace. NULL: out of memory, and the error is recorded in the latch. */
static struct workspace *workspace(struct spill *p)
{
    struct workspace *w = &p->work[task_thread()];
    if (!w->packer && !(w->packer = spill_packer_new(p->slice_size)))
        latch_fail(p->opt.engine->latch, "out of memory for sorting on disk; use fewer threads (-@)");
    return w->packer ? w : NULL;
}

/* ---------------------------------------------------------- arenas to runs */

/* Returns the keys of a sublist that belong to range `number`. */
static struct merge_way keys_in_range(const struct spill *p, size_t number, const struct bam_sublist *sublist)
{
    struct merge_way mine = {sublist->keys, sublist->keys + sublist->n, p->arena->base};
    if (number + 1 < p->n_ranges)
        mine.end = run_cut_find(&p->ranges[number + 1].from, p->rule, mine, 0);
    if (number > 0)
        mine.next = run_cut_find(&p->ranges[number].from, p->rule, mine, 0);
    return mine;
}

/* Takes AHEAD keys at a time and prefetches their records, which are scattered over the arena. */
static int write_merged(struct spill_writer *writer, struct run_merge *merge)
{
    struct merge_item items[AHEAD];
    size_t n;
    do {
        for (n = 0; n < AHEAD && run_merge_next(merge, &items[n]) > 0; n++) {
            const uint8_t *record = bam_key_record(items[n].base, items[n].key);
            for (int line = 0; line < 6; line++)
                __builtin_prefetch(record + 64 * line);
        }
        for (size_t i = 0; i < n; i++)
            if (spill_writer_put(writer, items[i].key.sort, bam_key_record(items[i].base, items[i].key),
                                 bam_key_record_size(items[i].base, items[i].key)) < 0)
                return -1;
    } while (n == AHEAD);
    return spill_writer_end(writer);
}

static void write_range(struct spill *p, size_t number)
{
    struct workspace *w = workspace(p);
    struct run_merge merge;
    const struct bam_arena *a = p->arena;
    if (!w)
        return;
    if (run_merge_init(&merge, p->rule, a->n_sublists, 0) < 0) {
        latch_fail(p->opt.engine->latch, "out of memory");
        return;
    }
    for (size_t i = 0; i < a->n_sublists; i++)
        run_merge_add(&merge, keys_in_range(p, number, &a->sublists[i]));
    struct spill_writer writer = {.packer = w->packer, .store = p->opt.store, .run = &p->ranges[number].run,
                                  .latch = p->opt.engine->latch};
    run_merge_start(&merge, NULL, NULL);         /* cannot fail, because there is no `more` function */
    write_merged(&writer, &merge);
    run_merge_free(&merge);
}

/* Writes range `number`. */
static void run_range(void *spill, uint32_t number)
{
    struct spill *p = spill;
    enum stage before = clocks_enter(p->opt.engine->clocks, STAGE_MERGE);
    if (!latch_tripped(p->opt.engine->latch))
        write_range(p, number);
    clocks_leave(p->opt.engine->clocks, before, 0);
}

/* Cuts the arena into ranges: returns their number, and sets where each range begins. Within an arena, places grow with
 * the input, so all its sublists count as one way. */
static size_t cut_ranges(struct spill *p)
{
    const struct bam_arena *a = p->arena;
    size_t n = a->walked / (p->slice_size * SLICES_PER_RANGE) + 1, n_records = 0;
    if (n > p->max_ranges)
        n = p->max_ranges;
    for (size_t i = 0; i < a->n_sublists; i++)
        n_records += a->sublists[i].n;
    size_t wanted = n * SAMPLES_PER_RANGE, n_samples = run_cut_sample(a, n_records / wanted + 1, p->samples, wanted);
    if (n > n_samples)
        n = n_samples ? n_samples : 1;
    for (size_t i = 1; i < n; i++)
        p->ranges[i].from = (struct run_cut){p->samples[i * n_samples / n], a->base, 0};
    return n;
}

/* A late task may claim any range that is READY. So all ranges are set before the first range becomes READY. */
void spill_arena_is_sorted(struct spill *p)
{
    size_t n = cut_ranges(p);
    atomic_store(&p->n_ranges, n);
    for (size_t i = 0; i < n; i++)
        task_ring_submit(&p->range_tasks, (uint32_t)i);
}

int spill_begin(struct spill *p, const struct bam_arena *arena)
{
    p->arena = arena;
    p->rule = bam_arena_order(arena).rule;
    p->help = 0;
    p->n_done = 0;
    atomic_store(&p->n_ranges, 0);
    return latch_tripped(p->opt.engine->latch) ? -1 : 0;
}

int spill_help(struct spill *p)
{
    for (size_t n = atomic_load(&p->n_ranges); p->help < n;)
        if (task_ring_run(&p->range_tasks, (uint32_t)p->help++))
            return 1;
    return 0;
}

/* ------------------------------------------------------------ list of runs */

/* The first and the last key of the arena, in its order. */
static void ends_of(const struct spill *p, struct bam_key *first, struct bam_key *last)
{
    const struct bam_arena *a = p->arena;
    struct bam_key_order order = {p->rule, a->base};
    *first = a->sublists[0].keys[0];
    *last = a->sublists[0].keys[a->sublists[0].n - 1];
    for (size_t i = 1; i < a->n_sublists; i++) {
        const struct bam_sublist *list = &a->sublists[i];
        if (bam_key_less(&order, &list->keys[0], first))
            *first = list->keys[0];
        if (bam_key_less(&order, last, &list->keys[list->n - 1]))
            *last = list->keys[list->n - 1];
    }
}

/* Returns whether the arena, which begins with this key, continues where the latest run ends. So sorted input of any
 * length makes one run. */
static bool goes_on(const struct spill *p, struct bam_key first)
{
    if (p->n_runs == 0 || first.sort < p->last_key.sort)
        return false;
    if (first.sort > p->last_key.sort || !p->rule)
        return true;
    return p->last_record.n > 0
        && sort_key_compare(p->rule, bam_record_at(p->last_record.p),
                            bam_record_at(bam_key_record(p->arena->base, first))) <= 0;
}

static int note_last(struct spill *p, struct bam_key last)
{
    size_t size = bam_key_record_size(p->arena->base, last);
    p->last_key = last;
    p->last_record.n = 0;
    if (!p->rule || size > p->slice_size)
        return 0;
    return byte_buffer_append(&p->last_record, bam_key_record(p->arena->base, last), size);
}

static struct spill_run *new_run(struct spill *p)
{
    struct spill_run *runs = byte_buffer_grow(p->runs, p->n_runs, &p->max_runs, sizeof *runs);
    if (!runs)
        return NULL;
    p->runs = runs;
    p->runs[p->n_runs] = (struct spill_run){0};
    return &p->runs[p->n_runs++];
}

/* Turns the ranges into a new run, or appends them to the latest one. */
static int list_run(struct spill *p)
{
    struct bam_key first, last;
    ends_of(p, &first, &last);
    struct spill_run *run = goes_on(p, first) ? &p->runs[p->n_runs - 1] : new_run(p);
    int failed = !run || note_last(p, last) < 0;
    for (size_t i = 0; i < p->n_ranges && !failed; i++)
        failed = spill_run_append(run, &p->ranges[i].run) < 0;
    return failed ? latch_fail(p->opt.engine->latch, "out of memory for the list of temporary data") : 0;
}

/* -------------------------------------------------------------- fewer runs */

/* Merges one range of several runs. */
static void run_merge_range(void *spill, uint32_t number)
{
    struct spill *p = spill;
    struct merge_range *range = &p->merge_ranges[number];
    struct workspace *w = latch_tripped(p->opt.engine->latch) ? NULL : workspace(p);
    range->result = -1;
    enum stage before = clocks_enter(p->opt.engine->clocks, STAGE_MERGE);
    if (w) {
        range->how.loader = &w->loader;
        range->how.writer = (struct spill_writer){.packer = w->packer, .store = p->opt.store, .run = &range->into,
                                                 .latch = p->opt.engine->latch};
        range->result = spill_merge(&range->how);
    }
    clocks_leave(p->opt.engine->clocks, before, 0);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Returns the first keys of all slices of the runs, sorted; *n is their number. NULL: out of memory. */
static uint64_t *slice_keys(const struct merging_runs *m, size_t *n)
{
    *n = 0;
    for (size_t i = 0; i < m->n; i++)
        *n += m->runs[i].n;
    uint64_t *keys = malloc((*n + 1) * sizeof *keys), *at = keys;
    for (size_t i = 0; keys && i < m->n; i++)
        for (size_t j = 0; j < m->runs[i].n; j++)
            *at++ = m->runs[i].slices[j].first_key;
    if (keys)
        qsort(keys, *n, sizeof *keys, by_value);
    return keys;
}

/* Cuts the order into at most n_ranges ranges. Records with equal keys are in one range, so the order among them does
 * not matter here. */
static int cut_merge_ranges(struct spill *p, size_t n_ranges)
{
    struct merging_runs *m = &p->merging;
    size_t n;
    uint64_t *keys = slice_keys(m, &n);
    if (!keys)
        return latch_fail(p->opt.engine->latch, "out of memory");
    m->n_ranges = 1;
    p->merge_ranges[0].how.from = 0;
    for (size_t i = 1; i < n_ranges && n > 0; i++) {
        uint64_t cut = keys[i * n / n_ranges];
        if (cut == p->merge_ranges[m->n_ranges - 1].how.from)
            continue;
        p->merge_ranges[m->n_ranges - 1].how.to = cut - 1;
        p->merge_ranges[m->n_ranges++].how.from = cut;
    }
    p->merge_ranges[m->n_ranges - 1].how.to = UINT64_MAX;
    free(keys);
    return 0;
}

static void hand_out_merge_ranges(struct spill *p, const struct room *room)
{
    const struct merging_runs *m = &p->merging;
    for (size_t i = 0; i < m->n_ranges; i++) {
        p->merge_ranges[i].how = (struct spill_merge){
            .runs = m->runs,
            .n = m->n,
            .rule = p->rule,
            .memory = room->memory + i * m->n * room->slice_size,
            .slice_size = room->slice_size,
            .from = p->merge_ranges[i].how.from,
            .to = p->merge_ranges[i].how.to,
            .cancelled = &p->cancelled,
        };
        task_ring_submit(&p->merge_tasks, (uint32_t)i);
    }
}

/* Puts the merged run in the place of the runs that were merged. */
static int replace_runs(struct spill *p)
{
    struct merging_runs *m = &p->merging;
    for (size_t i = 1; i < m->n_ranges; i++)
        if (spill_run_append(&p->merge_ranges[0].into, &p->merge_ranges[i].into) < 0)
            return latch_fail(p->opt.engine->latch, "out of memory for the list of temporary data");
    for (size_t i = 0; i < m->n; i++)
        spill_run_remove(&p->runs[m->first + i], p->opt.store);
    p->runs[m->first] = p->merge_ranges[0].into;
    p->merge_ranges[0].into = (struct spill_run){0};
    size_t behind = m->first + m->n, fewer = m->n - 1;
    memmove(p->runs + m->first + 1, p->runs + behind, (p->n_runs - behind) * sizeof *p->runs);
    p->n_runs -= fewer;
    return 0;
}

/* Takes over the result of a merging whose ranges are all DONE. -1: it failed. */
static int end_merging(struct spill *p)
{
    struct merging_runs *m = &p->merging;
    int result = 1;
    for (size_t i = 0; i < m->n_ranges; i++) {
        result = p->merge_ranges[i].result < result ? p->merge_ranges[i].result : result;
        task_ring_release(&p->merge_tasks, (uint32_t)i);
    }
    if (result > 0 && replace_runs(p) < 0)
        result = -1;
    for (size_t i = 0; i < m->n_ranges; i++)
        spill_run_remove(&p->merge_ranges[i].into, p->opt.store);
    free(m->runs);
    *m = (struct merging_runs){0};
    return result < 0 ? -1 : 0;
}

static bool is_merged(const struct spill *p)
{
    for (size_t i = 0; i < p->merging.n_ranges; i++)
        if (task_ring_state(&p->merge_tasks, (uint32_t)i) != TASK_DONE)
            return false;
    return true;
}

/* Merges all ranges that no thread has claimed, and waits for the other ranges. -1: failed. */
static int finish_merging(struct spill *p)
{
    for (size_t i = 0; i < p->merging.n_ranges; i++)
        task_ring_run(&p->merge_tasks, (uint32_t)i);
    for (size_t i = 0; i < p->merging.n_ranges; i++)
        task_ring_wait(&p->merge_tasks, (uint32_t)i, TASK_DONE, NULL, p->opt.engine->clocks);
    return end_merging(p);
}

/* Chooses n adjacent runs with the fewest bytes among the first `among` runs. So small runs are merged with small runs,
 * and no byte is merged often. */
static size_t choose_runs(const struct spill *p, size_t n, size_t among)
{
    uint64_t least = UINT64_MAX;
    size_t first = 0;
    for (size_t at = 0; at + n <= among; at++) {
        uint64_t bytes = 0;
        for (size_t i = at; i < at + n; i++)
            bytes += p->runs[i].bytes;
        if (bytes < least) {
            least = bytes;
            first = at;
        }
    }
    return first;
}

static size_t largest_slice(const struct spill *p)
{
    size_t largest = p->slice_size;
    for (size_t i = 0; i < p->n_runs; i++)
        largest = p->runs[i].largest > largest ? p->runs[i].largest : largest;
    return largest;
}

/* Begins to merge n of the first `among` runs, in as many ranges as the room has slices for, but at most n_ranges.
 * Slices larger than the room's slices take additional memory; in that case there is only one range. */
static int begin_merging(struct spill *p, size_t n, size_t among, const struct room *room, size_t n_ranges)
{
    struct merging_runs *m = &p->merging;
    size_t fit = largest_slice(p) > room->slice_size ? 1 : room->n_slices / n;
    *m = (struct merging_runs){.first = choose_runs(p, n, among), .n = n, .runs = malloc(n * sizeof *m->runs)};
    if (!m->runs)
        return latch_fail(p->opt.engine->latch, "out of memory");
    memcpy(m->runs, p->runs + m->first, n * sizeof *m->runs);
    if (cut_merge_ranges(p, fit < n_ranges ? fit : n_ranges) < 0)
        return -1;
    hand_out_merge_ranges(p, room);
    return 0;
}

/* Returns how many runs to merge at a time: few enough that each of n_ranges threads has a range, but enough that it
 * suffices to merge each run once. */
static size_t runs_at_once(const struct spill *p, const struct room *room, size_t n_ranges, size_t fan_in)
{
    enum { FEWEST = 4 };
    assert(fan_in > 0);
    size_t n = room->n_slices / n_ranges, enough = p->n_runs / fan_in + 1;
    n = n > enough ? n : enough;
    n = n > FEWEST ? n : FEWEST;
    return n < room->n_slices ? n : room->n_slices;
}

/* Begins to merge runs before there are too many of them. Leaves out the latest run, which may still grow. */
static int merge_in_background(struct spill *p)
{
    enum { THREADS_PER_RANGE = 4 };               /* most threads continue reading */
    size_t slice_size = largest_slice(p), n_ranges = ((size_t)p->opt.engine->n_threads - 1) / THREADS_PER_RANGE + 1;
    struct room room = {p->memory, p->opt.merge_memory / slice_size, slice_size};
    if (p->merging.n_ranges > 0 && is_merged(p) && end_merging(p) < 0)
        return -1;
    size_t n = runs_at_once(p, &room, n_ranges, p->fan_in);
    n = n < p->n_runs - 1 ? n : p->n_runs - 1;
    if (p->opt.engine->n_threads == 1 || p->n_runs <= p->fan_in || n < 2 || p->merging.n_ranges > 0)
        return 0;
    if (!p->memory && !(room.memory = p->memory = malloc(p->opt.merge_memory)))
        return 0;                                /* without this memory they are merged after reading */
    return begin_merging(p, n, p->n_runs - 1, &room, n_ranges);
}

bool spill_is_done(struct spill *p)
{
    size_t n = atomic_load(&p->n_ranges);
    for (; p->n_done < n && task_ring_state(&p->range_tasks, (uint32_t)p->n_done) == TASK_DONE; p->n_done++)
        task_ring_release(&p->range_tasks, (uint32_t)p->n_done);
    return latch_tripped(p->opt.engine->latch) || (n > 0 && p->n_done == n);
}

int spill_end(struct spill *p)
{
    if (latch_tripped(p->opt.engine->latch) || list_run(p) < 0)
        return -1;
    p->arena = NULL;
    return merge_in_background(p);
}

int spill_settle(struct spill *p, uint8_t *memory, size_t size, size_t *slice_size)
{
    size_t largest = largest_slice(p), n_slices = size / largest > SLICES_LEAST ? size / largest : SLICES_LEAST;
    *slice_size = largest <= size / SLICES_LEAST ? largest : p->slice_size;
    size_t buffers = size / *slice_size, n_ranges = (size_t)p->opt.engine->n_threads;
    /* Slices that are larger than a buffer are read one at a time. */
    size_t fan_in = (buffers < n_slices ? n_slices : buffers) / 2;
    struct room room = {memory, n_slices, *slice_size};
    atomic_store(&p->cancelled, p->n_runs <= fan_in);
    if (p->merging.n_ranges > 0 && finish_merging(p) < 0)
        return -1;
    atomic_store(&p->cancelled, false);
    while (p->n_runs > fan_in) {
        size_t n = runs_at_once(p, &room, n_ranges, fan_in), excess = p->n_runs - fan_in;
        if (begin_merging(p, n < excess + 1 ? n : excess + 1, p->n_runs, &room, n_ranges) < 0 || finish_merging(p) < 0)
            return -1;
    }
    return 0;
}
