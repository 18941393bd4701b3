/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "base/byte_buffer.h"
#include "base/latch.h"
#include "merge/run_cut.h"
#include "order/sort_key.h"
#include "spill/spill.h"
#include "base/stats.h"
#include "base/task_ring.h"

enum {
    /* Enough ranges for threads to share them evenly, but so few that the last, partly filled slice of each does not
     * matter. */
    RANGES_PER_THREAD = 8,
    SLICES_PER_RANGE = 4,        /* or more */
    SAMPLES_PER_RANGE = 32,      /* keys, so that ranges come out even */
    SLICES_LEAST = 4,            /* of the last merge: two for each of two runs. If need be, more memory is taken */
    AHEAD = 16,                  /* records fetched into the cache before they are copied */
};

/* A part of the arena that one task writes. */
struct range {
    struct run_cut from;         /* where it begins (unused in range 0); set by the thread that cuts the ranges */
    struct spill_run part;       /* set by the claimer before DONE */
};

/* Adjacent runs that a task merges into one. */
struct merging {
    size_t first;                /* which runs: this one and the next; set by the main thread */
    struct spill_merge how;      /* of copies of those runs, since the list may move; set by the main thread, but for
                                  * loader and writer */
    struct spill_run into;       /* set by the claimer before DONE */
    int result;                  /* of spill_merge(); set by the claimer before DONE */
};

/* What one thread needs to write and load slices. Made when the thread first needs it. */
struct workspace {
    struct spill_packer *packer;
    struct spill_loader loader;
};

struct spill {
    struct spill_options opt;
    size_t slice_size, fan_in;   /* see spill_set_sizes() */
    struct spill_gate packing, unpacking;
    struct workspace *work;      /* one per thread */
    const struct bam_arena *arena;   /* the one that is leaving memory; set by the main thread */
    const struct sort_rule *rule;   /* compares records of equal keys; NULL: they are not compared; set by the
                                     * main thread, with the arena */
    struct range *ranges;
    struct task_ring range_tasks;   /* of them, from the first one on for each arena; by the splitter */
    size_t max_ranges;
    struct bam_key *samples;
    _Atomic size_t n_ranges;     /* 0 until they are cut; set by the thread that cuts them */
    _Atomic size_t n_done;       /* ranges written; counted by any thread */
    size_t help;                 /* no range before this one is READY; main thread only */
    struct spill_run *runs;      /* main thread only, as all below */
    size_t n_runs, max_runs;
    struct bam_key last_key;     /* of the latest run's last record, of which last_record holds the bytes */
    struct byte_buffer last_record;
    struct merging *mergings;    /* one per thread; [0] is the one in the background */
    struct task_ring merging_tasks;   /* of them; a slot is FREE while there is no merging */
    uint8_t *memory;             /* of mergings[0] in the background */
    atomic_bool cancelled;       /* mergings[0] is no longer wanted; set by the main thread, read by its task */
};

static void run_range(void *spill, uint32_t number);
static void run_merging(void *spill, uint32_t number);

struct spill *spill_open(const struct spill_options *options)
{
    struct spill *p = calloc(1, sizeof *p);
    if (p) {
        size_t n = (size_t)options->n_threads;
        p->opt = *options;
        pthread_mutex_init(&p->packing.mutex, NULL);
        pthread_mutex_init(&p->unpacking.mutex, NULL);
        p->max_ranges = n * RANGES_PER_THREAD;
        struct task_ring_options ranges = {.n_slots = (uint32_t)p->max_ranges, .run = run_range, .arg = p,
                                           .run_releases = true};
        struct task_ring_options mergings = {.n_slots = (uint32_t)n, .run = run_merging, .arg = p};
        p->work = calloc(n, sizeof *p->work);
        p->mergings = calloc(n, sizeof *p->mergings);
        p->ranges = calloc(p->max_ranges, sizeof *p->ranges);
        p->samples = calloc(p->max_ranges * SAMPLES_PER_RANGE, sizeof *p->samples);
        if (p->work && p->mergings && p->ranges && p->samples && task_ring_open(&p->range_tasks, &ranges) == 0
            && task_ring_open(&p->merging_tasks, &mergings) == 0)
            return p;
    }
    latch_fail(options->latch, "out of memory");
    spill_close(p);
    return NULL;
}

void spill_close(struct spill *p)
{
    if (!p)
        return;
    for (int i = 0; p->work && i < p->opt.n_threads; i++) {
        spill_packer_free(p->work[i].packer);
        spill_loader_free(&p->work[i].loader);
    }
    for (size_t i = 0; p->ranges && i < p->max_ranges; i++)
        spill_run_free(&p->ranges[i].part);
    for (int i = 0; p->mergings && i < p->opt.n_threads; i++) {
        spill_run_free(&p->mergings[i].into);
        free(p->mergings[i].how.runs);
    }
    for (size_t i = 0; i < p->n_runs; i++)
        spill_run_free(&p->runs[i]);
    task_ring_close(&p->range_tasks, !latch_tripped(p->opt.latch));
    task_ring_close(&p->merging_tasks, !latch_tripped(p->opt.latch));
    free(p->work);
    free(p->ranges);
    free(p->samples);
    free(p->mergings);
    free(p->runs);
    free(p->last_record.p);
    free(p->memory);
    pthread_mutex_destroy(&p->packing.mutex);
    pthread_mutex_destroy(&p->unpacking.mutex);
    free(p);
}

void spill_set_sizes(struct spill *p, size_t slice_size, size_t fan_in)
{
    p->slice_size = p->packing.large = p->unpacking.large = slice_size;
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

/* The calling thread's workspace. NULL: no memory, and the error is recorded in the latch. */
static struct workspace *workspace(struct spill *p)
{
    struct workspace *w = &p->work[task_thread()];
    w->loader.gate = &p->unpacking;
    if (!w->packer && !(w->packer = spill_packer_new(p->slice_size)))
        latch_fail(p->opt.latch, "out of memory for sorting on disk; use fewer threads (-@)");
    return w->packer ? w : NULL;
}

/* ---------------------------------------------------------- arenas to runs */

/* The part of a sublist that belongs to range `number`. */
static struct merge_source part_of(const struct spill *p, size_t number, const struct bam_sublist *sublist)
{
    struct merge_source part = {sublist->keys, sublist->keys + sublist->n, p->arena->base};
    if (number + 1 < p->n_ranges)
        part.end = run_cut_find(&p->ranges[number + 1].from, p->rule, part, 0);
    if (number > 0)
        part.next = run_cut_find(&p->ranges[number].from, p->rule, part, 0);
    return part;
}

/* Takes AHEAD keys at a time and prefetches their records, which lie anywhere in the arena. */
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
    if (run_merge_init(&merge, p->rule, a->n_sublists) < 0) {
        latch_fail(p->opt.latch, "out of memory");
        return;
    }
    for (size_t i = 0; i < a->n_sublists; i++)
        run_merge_add(&merge, part_of(p, number, &a->sublists[i]));
    struct spill_writer writer = {.packer = w->packer, .store = p->opt.store, .run = &p->ranges[number].part,
                                  .gate = &p->packing, .latch = p->opt.latch};
    run_merge_start(&merge, NULL, NULL);         /* cannot fail, because there is no `more` function */
    write_merged(&writer, &merge);
    run_merge_free(&merge);
}

/* Writes range `number`. */
static void run_range(void *spill, uint32_t number)
{
    struct spill *p = spill;
    enum stage before = stats_enter(p->opt.stats, STAGE_MERGE);
    if (!latch_tripped(p->opt.latch))
        write_range(p, number);
    stats_leave(p->opt.stats, before, 0);
    task_ring_release(&p->range_tasks, number);  /* before it counts as done: then all may be handed out again */
    atomic_fetch_add(&p->n_done, 1);
}

/* Returns how many ranges there are; sets where each begins. Within an arena places grow with the input, so all its
 * sublists count as one source. */
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

/* A late task may claim any range that is READY. So all ranges are set before the first one becomes READY. */
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
    atomic_store(&p->n_done, 0);
    atomic_store(&p->n_ranges, 0);
    return latch_tripped(p->opt.latch) ? -1 : 0;
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

/* Whether the arena, which begins with this key, continues where the latest run ends. So sorted
 * input, however long, makes one run. */
static bool goes_on(const struct spill *p, struct bam_key first)
{
    if (!p->last_record.p)
        return false;
    if (first.sort != p->last_key.sort)
        return first.sort > p->last_key.sort;
    return !p->rule
        || sort_key_compare(p->rule, (const struct bam_record *)p->last_record.p,
                            (const struct bam_record *)bam_key_record(p->arena->base, first)) <= 0;
}

static int note_last(struct spill *p, struct bam_key last)
{
    size_t size = bam_key_record_size(p->arena->base, last);
    if (byte_buffer_reserve(&p->last_record, size) < 0)
        return -1;
    memcpy(p->last_record.p, bam_key_record(p->arena->base, last), size);
    p->last_key = last;
    return 0;
}

static struct spill_run *new_run(struct spill *p)
{
    if (p->n_runs == p->max_runs) {
        size_t max = p->max_runs ? 2 * p->max_runs : 64;
        struct spill_run *grown = realloc(p->runs, max * sizeof *grown);
        if (!grown)
            return NULL;
        p->runs = grown;
        p->max_runs = max;
    }
    p->runs[p->n_runs] = (struct spill_run){0};
    return &p->runs[p->n_runs++];
}

/* Turns the parts into a new run, or appends them to the latest one. */
static int list_run(struct spill *p)
{
    struct bam_key first, last;
    ends_of(p, &first, &last);
    struct spill_run *run = goes_on(p, first) ? &p->runs[p->n_runs - 1] : new_run(p);
    int failed = !run || note_last(p, last) < 0;
    for (size_t i = 0; i < p->n_ranges && !failed; i++)
        failed = spill_run_append(run, &p->ranges[i].part) < 0;
    return failed ? latch_fail(p->opt.latch, "out of memory for the list of temporary data") : 0;
}

/* -------------------------------------------------------------- fewer runs */

/* Merges the runs of a merging. */
static void run_merging(void *spill, uint32_t number)
{
    struct spill *p = spill;
    struct merging *m = &p->mergings[number];
    struct workspace *w = latch_tripped(p->opt.latch) ? NULL : workspace(p);
    m->result = -1;
    enum stage before = stats_enter(p->opt.stats, STAGE_MERGE);
    if (w) {
        m->how.loader = &w->loader;
        m->how.writer = (struct spill_writer){.packer = w->packer, .store = p->opt.store, .run = &m->into,
                                              .gate = &p->packing, .latch = p->opt.latch};
        m->result = spill_merge(&m->how);
    }
    stats_leave(p->opt.stats, before, 0);
}

static uint32_t slot_of(const struct spill *p, const struct merging *m)
{
    return (uint32_t)(m - p->mergings);
}

static enum task_state state_of(const struct spill *p, const struct merging *m)
{
    return task_ring_state(&p->merging_tasks, slot_of(p, m));
}

static int begin_merging(struct spill *p, struct merging *m, size_t first, size_t n, uint8_t *memory, size_t slice_size)
{
    struct spill_run *runs = malloc(n * sizeof *runs);
    if (!runs)
        return latch_fail(p->opt.latch, "out of memory");
    memcpy(runs, p->runs + first, n * sizeof *runs);
    m->first = first;
    m->how = (struct spill_merge){
        .runs = runs,
        .n = n,
        .rule = p->rule,
        .memory = memory,
        .slice_size = slice_size,
        .cancelled = &p->cancelled,
    };
    task_ring_submit(&p->merging_tasks, slot_of(p, m));
    return 0;
}

/* Puts the merged run in place of the runs it was made of. */
static void replace_runs(struct spill *p, struct merging *m)
{
    for (size_t i = 0; i < m->how.n; i++)
        spill_run_remove(&p->runs[m->first + i], p->opt.store);
    p->runs[m->first] = m->into;
    m->into = (struct spill_run){0};
    size_t behind = m->first + m->how.n, fewer = m->how.n - 1;
    memmove(p->runs + m->first + 1, p->runs + behind, (p->n_runs - behind) * sizeof *p->runs);
    p->n_runs -= fewer;
    for (int i = 0; i < p->opt.n_threads; i++)
        if (p->mergings[i].first > m->first)
            p->mergings[i].first -= fewer;
}

/* Takes over the result of a merging that is DONE. -1: it failed. */
static int end_merging(struct spill *p, struct merging *m)
{
    if (m->result > 0)
        replace_runs(p, m);
    else
        spill_run_remove(&m->into, p->opt.store);
    free(m->how.runs);
    m->how.runs = NULL;
    task_ring_release(&p->merging_tasks, slot_of(p, m));
    return m->result < 0 ? -1 : 0;
}

static bool being_merged(const struct spill *p, size_t first, size_t n)
{
    for (int i = 0; i < p->opt.n_threads; i++) {
        const struct merging *m = &p->mergings[i];
        if (state_of(p, m) != TASK_FREE && first < m->first + m->how.n && m->first < first + n)
            return true;
    }
    return false;
}

/* Chooses, among the first `among` runs, the n adjacent ones with the fewest bytes that are not being
 * merged. So small runs are merged with small ones, and no byte is merged often. 0: there are none. */
static int choose_runs(const struct spill *p, size_t n, size_t among, size_t *first)
{
    uint64_t least = UINT64_MAX;
    for (size_t at = 0; at + n <= among; at++) {
        uint64_t bytes = 0;
        for (size_t i = at; i < at + n; i++)
            bytes += p->runs[i].bytes;
        if (bytes < least && !being_merged(p, at, n)) {
            least = bytes;
            *first = at;
        }
    }
    return least < UINT64_MAX;
}

static size_t largest_slice(const struct spill *p)
{
    size_t largest = p->slice_size;
    for (size_t i = 0; i < p->n_runs; i++)
        largest = p->runs[i].largest > largest ? p->runs[i].largest : largest;
    return largest;
}

/* Begins to merge runs before there are too many. Leaves out the latest run, which may still grow. */
static int merge_in_background(struct spill *p)
{
    struct merging *m = &p->mergings[0];
    size_t slice_size = largest_slice(p), n = p->opt.merge_memory / slice_size, first;
    if (state_of(p, m) == TASK_DONE && end_merging(p, m) < 0)
        return -1;
    if (n > p->n_runs - 1)
        n = p->n_runs - 1;
    if (p->opt.n_threads == 1 || p->n_runs <= p->fan_in || n < 2
        || state_of(p, m) != TASK_FREE || !choose_runs(p, n, p->n_runs - 1, &first))
        return 0;
    if (!p->memory && !(p->memory = malloc(p->opt.merge_memory)))
        return 0;                                /* then they are merged after reading */
    return begin_merging(p, m, first, n, p->memory, slice_size);
}

bool spill_is_done(const struct spill *p)
{
    size_t n = atomic_load(&p->n_ranges);
    return latch_tripped(p->opt.latch) || (n > 0 && atomic_load(&p->n_done) == n);
}

int spill_end(struct spill *p)
{
    if (latch_tripped(p->opt.latch) || list_run(p) < 0)
        return -1;
    p->arena = NULL;
    return merge_in_background(p);
}

static int finish_merging(struct spill *p, struct merging *m)
{
    task_ring_run(&p->merging_tasks, slot_of(p, m));
    task_ring_wait(&p->merging_tasks, slot_of(p, m), TASK_DONE, NULL, p->opt.stats);
    return end_merging(p, m);
}

/* Merges runs, in several tasks, until `excess` runs are gone or each task has done its share. */
static int merge_side_by_side(struct spill *p, size_t excess, uint8_t *memory, size_t n_slices, size_t slice_size)
{
    enum { FEWEST = 16 };                        /* runs that are worth a task */
    size_t n_tasks = n_slices / FEWEST < 1 ? 1 : n_slices / FEWEST;
    if (n_tasks > (size_t)p->opt.n_threads)
        n_tasks = (size_t)p->opt.n_threads;
    size_t share = n_slices / n_tasks, begun = 0, first;
    for (; begun < n_tasks && excess > 0; begun++) {
        size_t n = (excess + n_tasks - begun - 1) / (n_tasks - begun) + 1;
        n = n < share ? n : share;
        if (n < 2 || !choose_runs(p, n, p->n_runs, &first))
            break;
        if (begin_merging(p, &p->mergings[begun], first, n, memory + begun * share * slice_size, slice_size) < 0)
            return -1;
        excess -= n - 1;
    }
    if (begun == 0)
        return latch_fail(p->opt.latch, "too little memory to merge temporary data; use a larger -m");
    for (size_t i = 0; i < begun; i++)
        if (finish_merging(p, &p->mergings[i]) < 0)
            return -1;
    return 0;
}

int spill_settle(struct spill *p, uint8_t *memory, size_t size, size_t *slice_size)
{
    size_t largest = largest_slice(p), n_slices = size / largest > SLICES_LEAST ? size / largest : SLICES_LEAST;
    size_t fan_in = n_slices / 2;
    *slice_size = largest <= size / SLICES_LEAST ? largest : p->slice_size;
    atomic_store(&p->cancelled, p->n_runs <= fan_in);
    if (state_of(p, &p->mergings[0]) != TASK_FREE && finish_merging(p, &p->mergings[0]) < 0)
        return -1;
    atomic_store(&p->cancelled, false);
    while (p->n_runs > fan_in)
        if (merge_side_by_side(p, p->n_runs - fan_in, memory, n_slices, *slice_size) < 0)
            return -1;
    return 0;
}
