/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "base/engine.h"
#include "base/latch.h"
#include "sort/greedy_merge.h"
#include "sort/merge_ring.h"
#include "write/record_sink.h"
#include "sort/run_cut.h"
#include "sort/run_samples.h"
#include "base/clocks.h"
#include "base/task_ring.h"

enum {
    /* The sublists may be cut once per RECORDS_PER_SAMPLE records. With n sublists, the size of a range differs from
     * the wanted size by 0.4 sqrt(n) times RECORDS_PER_SAMPLE: by 700 records if n is 100. If the records outgrow the
     * list, all threads wait for the second pass: with 512, the efficiency of 64 threads that wrote 0.94 GB was 75 %,
     * not 90 % (slow motion). SAMPLES_MAX bounds the cuts to 64 Ki, which are sorted in 1 to 2 ms. */
    RECORDS_PER_SAMPLE = 128, SAMPLES_MAX = 1 << 16,
    RECORDS_PER_WAY = 8,         /* least number in a range, because each way is searched for both cuts */
    RANGES_PER_THREAD = 4,       /* if there is little data, so that all threads get ranges */
};

/* The slices of one run that a range needs. */
struct span {
    size_t next;                 /* the next slice to merge; set by the main thread before READY, advanced by the
                                  * claimer */
    size_t end;                  /* one past the last slice; set by the main thread before READY */
    size_t needed;               /* the first slice that later ranges need; main thread only */
};

/* A range with more records than its list holds is handed out again once the records of the list are put. */
struct range {
    struct run_cut from, to;     /* the fields down to spans: set by the main thread before READY for the first time */
    bool is_first, is_last;      /* the first range has no `from`, the last has no `to` */
    struct span *spans;          /* one per run */
    bool begun;                  /* the heap is set up; cleared by the main thread before READY, set by the claimer */
    struct run_merge merge;      /* used by the claimer; has memory for all ways */
    struct record_list list;     /* merged, in order; written by the claimer before DONE */
    bool whole;                  /* the list has the range's last records; set by the claimer before DONE */
    const struct merge_ring *ring;
};

/* A list that does not belong to a range. */
struct spare_list {
    struct record_list list;
    uint64_t mark;               /* of the sink, after the list's records */
};

/* Estimates how many records of a run are before a key. The estimate assumes that keys are evenly spread between the
 * first keys of two slices. */
struct run_flow {
    uint64_t first, next;        /* first keys: of the slice taken last, and of the slice after it; or the slice's own
                                  * last key ... */
    bool ends;                   /* ... if there is no slice after it */
    uint64_t last;               /* the last key of the slice taken last */
    double before, n;            /* records in all slices before that slice, and in that slice */
};

struct merge_ring {
    struct merge_ring_options opt;
    const struct sort_rule *rule;   /* see struct run_merge */
    size_t n_ways;               /* runs, then the arenas' sublists; for cuts, all sublists of an arena are one way */
    size_t sample_records;       /* records of a sublist between two samples */
    size_t range_records;        /* records wanted in a range */
    size_t steps_max;            /* most slices that begin in a range, so that other ranges get slices too */
    struct range *ranges;
    struct task_ring ring;       /* ring of the ranges: a range is handed out when planned, and taken back when put */
    struct spare_list *spare;    /* main thread only, as all fields below; used in turn */
    size_t next_spare;
    struct run_samples samples[MERGE_ARENAS_MAX];   /* for each arena: where the order may be cut */
    struct greedy_merge greedy;  /* the merge of runs that are not in order; main thread only */
    bool is_greedy;              /* `greedy` is open */
    /* The range that is being planned: */
    struct run_cut from;         /* where the range begins, ... */
    bool is_first;               /* ... unless it begins with the first record of all */
    bool is_begun;               /* the slice or sample that begins at `from` is in it */
    size_t *first, *taken;       /* the range's slices of each run: [first, taken) */
    struct run_flow *flows;      /* of each run */
    size_t steps;                /* slices that begin in the range */
    double before;               /* estimated number of records before the range */
    bool has_last;               /* the range took the slice or sample that begins at `last`, inside it, after all else,
                                  * ... */
    struct run_cut last;
    struct run_flow last_flow;   /* ... this was the run's flow before that, ... */
    double last_records;         /* ... and about this number of the range's records precede `last` */
    bool planned_all;
    bool is_out;                 /* merge_ring_next() gave out the list of the oldest range ... */
    bool is_lent;                /* ... and the sink may use that list until it has passed it */
};

/* ------------------------------------------------------------------- memory */

static size_t n_records_of(const struct bam_arena *a)
{
    size_t n = 0;
    for (size_t i = 0; i < a->n_sublists; i++)
        n += a->sublists[i].n;
    return n;
}

static int open_samples(struct merge_ring *m)
{
    for (size_t i = 0; i < m->opt.n_arenas; i++)
        if (run_samples_open(&m->samples[i], m->opt.arenas[i], m->sample_records, m->opt.engine) < 0)
            return -1;
    return 0;
}

static void run_range(void *ring, uint32_t index);

static void begin_flows(struct merge_ring *m)
{
    const struct merge_runs *runs = &m->opt.runs;
    for (size_t i = 0; i < runs->n; i++)
        m->flows[i].ends = !runs->first_key(runs->reader, i, 0, &m->flows[i].next);
}

static int ring_alloc(struct merge_ring *m)
{
    const struct merge_ring_options *o = &m->opt;
    struct task_ring_options ring = {
        .n_slots = o->n_ranges,
        /* For two threads, ranges would be handed out in pairs. */
        .n_threads = o->engine->n_threads > 2 ? o->engine->n_threads : 0,
        .large_batches = true,
        .run = run_range,
        .arg = m,
    };
    if (task_ring_open(&m->ring, &ring) < 0)
        return -1;
    m->first = calloc(o->runs.n + 1, sizeof *m->first);
    m->taken = calloc(o->runs.n + 1, sizeof *m->taken);
    m->flows = calloc(o->runs.n + 1, sizeof *m->flows);
    m->ranges = calloc(o->n_ranges, sizeof *m->ranges);
    m->spare = calloc(o->n_spare + 1, sizeof *m->spare);
    if (!m->first || !m->taken || !m->flows || !m->ranges || !m->spare || open_samples(m) < 0)
        return -1;
    begin_flows(m);
    for (struct range *range = m->ranges; range < m->ranges + o->n_ranges; range++) {
        range->ring = m;
        range->spans = calloc(o->runs.n + 1, sizeof *range->spans);
        if (record_list_alloc(&range->list, o->n_records) < 0 || !range->spans
            || run_merge_init(&range->merge, m->rule, m->n_ways, 0) < 0)
            return -1;
    }
    for (uint32_t i = 0; i < o->n_spare; i++)
        if (record_list_alloc(&m->spare[i].list, o->n_records) < 0)
            return -1;
    return 0;
}

/* Chooses the sizes of ranges and samples. */
static void choose_sizes(struct merge_ring *m)
{
    const struct merge_ring_options *o = &m->opt;
    size_t threads = (size_t)o->engine->n_threads, in_memory = 0;
    for (size_t i = 0; i < o->n_arenas; i++)
        in_memory += n_records_of(o->arenas[i]);
    size_t least = RECORDS_PER_WAY * m->n_ways, share = in_memory / (RANGES_PER_THREAD * threads) + 1;
    m->range_records = o->n_records / 4 * 3;     /* so that even the next cut is rarely beyond the list's end */
    if (o->runs.n == 0 && share < m->range_records)
        m->range_records = share;
    if (o->copy && o->n_wanted < m->range_records)
        m->range_records = o->n_wanted;
    if (m->range_records < least)
        m->range_records = least;
    m->sample_records = in_memory / SAMPLES_MAX + RECORDS_PER_SAMPLE;
    if (m->sample_records > m->range_records / 2 + 1)
        m->sample_records = m->range_records / 2 + 1;
    m->steps_max = 1;
    if (o->runs.n)                               /* ranges for half of the threads may take slices read ahead */
        m->steps_max += (o->runs.n * (o->runs.n_buffers - 1) + o->runs.n_shared / 2) / (threads / 2 + 1);
}

struct merge_ring *merge_ring_open(const struct merge_ring_options *options)
{
    struct merge_ring *m = calloc(1, sizeof *m);
    if (m) {
        m->opt = *options;
        m->rule = bam_arena_order(options->arenas[0]).rule;
        m->n_ways = options->runs.n;
        for (size_t i = 0; i < options->n_arenas; i++)
            m->n_ways += options->arenas[i]->n_sublists;
        m->is_first = m->is_begun = true;
        choose_sizes(m);
        enum stage before = clocks_enter(m->opt.engine->clocks, STAGE_PLAN);
        int result = ring_alloc(m);
        for (size_t i = 0; result == 0 && i < options->n_arenas; i++)
            run_samples_take(&m->samples[i]);    /* its tasks may be late, so nothing may fail after it */
        clocks_leave(m->opt.engine->clocks, before, 0);
        if (result == 0)
            return m;
    }
    latch_fail(options->engine->latch, "out of memory for merging");
    merge_ring_close(m);
    return NULL;
}

void merge_ring_close(struct merge_ring *m)
{
    if (!m)
        return;
    for (uint32_t i = 0; m->ranges && i < m->opt.n_ranges; i++) {
        free(m->ranges[i].spans);
        record_list_free(&m->ranges[i].list);
        run_merge_free(&m->ranges[i].merge);
    }
    for (uint32_t i = 0; m->spare && i < m->opt.n_spare; i++)
        record_list_free(&m->spare[i].list);
    for (size_t i = 0; i < m->opt.n_arenas; i++)
        run_samples_free(&m->samples[i]);
    if (m->is_greedy)
        greedy_merge_close(&m->greedy);
    free(m->spare);
    task_ring_close(&m->ring, !latch_tripped(m->opt.engine->latch));
    free(m->ranges);
    free(m->first);
    free(m->taken);
    free(m->flows);
    free(m);
}

size_t merge_ring_memory(uint32_t n_ranges, uint32_t n_spare, uint32_t n_records, size_t n_ways)
{
    size_t way = sizeof(struct span) + sizeof(struct merge_way) + sizeof(struct merge_head);
    return task_ring_memory(n_ranges) + n_ranges * (sizeof(struct range) + n_ways * way)
         + n_spare * sizeof(struct spare_list) + (n_ranges + n_spare) * record_list_memory(n_records);
}

/* ------------------------------------------------------- tasks: one range */

/* Returns the keys of a way that belong to the range. If the cut is the beginning of a slice of the same run, no search
 * is needed, because the range has complete slices of that run. */
static struct merge_way keys_in_range(const struct range *range, size_t way, struct merge_way keys)
{
    const struct merge_ring *m = range->ring;
    bool is_run = way < m->opt.runs.n;
    if (!range->is_last && !(is_run && way == range->to.way))
        keys.end = run_cut_find(&range->to, m->rule, keys, way);
    if (!range->is_first && !(is_run && way == range->from.way))
        keys.next = run_cut_find(&range->from, m->rule, keys, way);
    return keys;
}

static int next_slice(void *arg, size_t number, struct merge_way *way)
{
    struct range *range = arg;
    const struct merge_runs *runs = &range->ring->opt.runs;
    if (number >= runs->n || range->spans[number].next == range->spans[number].end)
        return 0;
    *way = keys_in_range(range, number, runs->slice(runs->reader, number, range->spans[number].next++));
    return 1;
}

static void begin_range(struct range *range)
{
    const struct merge_ring *m = range->ring;
    run_merge_reset(&range->merge, m->opt.runs.n);
    for (size_t i = 0; i < m->opt.n_arenas; i++)
        for (size_t j = 0; j < m->opt.arenas[i]->n_sublists; j++) {
            const struct bam_sublist *list = &m->opt.arenas[i]->sublists[j];
            struct merge_way whole = {list->keys, list->keys + list->n, m->opt.arenas[i]->base};
            run_merge_add(&range->merge, keys_in_range(range, m->opt.runs.n + i, whole));
        }
    run_merge_start(&range->merge, next_slice, range);   /* next_slice() cannot fail */
    range->begun = true;
}

static void merge_range(struct range *range)
{
    struct clocks *clocks = range->ring->opt.engine->clocks;
    struct merge_item item;
    enum stage before = clocks_enter(clocks, STAGE_MERGE);
    if (!range->begun)
        begin_range(range);
    size_t bytes = 0, most = range->ring->opt.copy ? range->ring->opt.n_bytes : SIZE_MAX;
    while (range->list.n < range->ring->opt.n_records && bytes < most
           && !(range->whole = run_merge_next(&range->merge, &item) == 0)) {
        uint32_t size = (uint32_t)bam_key_record_size(item.base, item.key);
        record_list_add(&range->list, bam_key_record(item.base, item.key), size, (uint16_t)item.way);
        bytes += size;
    }
    clocks_records(clocks, range->list.n);
    clocks_leave(clocks, before, 0);
}

/* Merges as many records as the range's list holds. */
static void run_range(void *ring, uint32_t index)
{
    struct merge_ring *m = ring;
    struct range *range = &m->ranges[index];
    record_list_empty(&range->list);
    if (latch_tripped(m->opt.engine->latch))
        return;
    merge_range(range);
    if (m->opt.copy && !m->opt.runs.is_partial)
        m->opt.copy(m->opt.arg, index, &range->list);
}

/* -------------------------------------------- main thread: planning ranges */

/* An example. Two runs have slices of 100 records each. Their first keys are known:
 *
 *   run A:  A0 10   A1 50   A2 90, and its last key 130       a list takes 200 records (n_records)
 *   run B:  B0 30   B1 70, and its last key 110               a range should have 150 (range_records)
 *
 * Each step finds the first slice that is not taken yet, and estimates how many records are before it. If its key lies
 * inside a slice of another run, the part of that slice that counts is the key's share of the distance to the next
 * slice (run_flow). The records before the range are subtracted.
 *
 *   found    before it:  of A   of B   in range   what is done
 *   A0 10                   0      0          0   range 0 begins; A0 is taken into it
 *   B0 30                  50      0         50   B0 is taken
 *   A1 50                 100     50        150   enough (ends_at): range 0 ends there, range 1 begins with A1
 *   B1 70                 150    100        100   B1 is taken
 *   A2 90                 200    150        200   too much for a list (ends_before): B1 is taken back, and range 1 ends
 *                                                 there, with 100 records; range 2 begins with B1
 *   A2 90                 200    150        100   A2 is taken
 *   none                                          range 2 ends with the last record; its 250 records take two passes
 *
 * Range 0 needs A0 and B0, range 1 A1 and again B0 (first_slice), range 2 A1, A2 and B1. A sample of sublists is taken
 * like a slice, but need not be loaded. A range that is not large enough ends anyway when it has steps_max slices, or
 * when another slice would fill the run's last buffer. */

/* Returns where the next slice of a run begins. If keys decide, the slice need not be ready. */
static struct run_cut slice_cut(const struct merge_ring *m, size_t run, uint64_t first_key)
{
    if (!m->rule)
        return (struct run_cut){{first_key, 0}, NULL, run};
    struct merge_way slice = m->opt.runs.slice(m->opt.runs.reader, run, m->taken[run]);
    return (struct run_cut){slice.next[0], slice.base, run};
}

/* Finds where the first slice that is not yet taken begins. 1: it begins at *cut; 0: all slices are taken; -1: not
 * known yet, because the records that must be compared are not ready. */
static int next_slice_cut(struct merge_ring *m, bool idle, struct run_cut *cut)
{
    const struct merge_runs *runs = &m->opt.runs;
    uint64_t least = UINT64_MAX;
    bool any = false, found = false;
    for (size_t i = 0; i < runs->n; i++)
        if (!m->flows[i].ends) {
            any = true;
            least = m->flows[i].next < least ? m->flows[i].next : least;
        }
    for (size_t i = 0; i < runs->n && any; i++) {
        if (m->flows[i].ends || m->flows[i].next != least)
            continue;
        if (m->rule && !runs->ready(runs->reader, i, m->taken[i], idle))
            return -1;
        struct run_cut other = slice_cut(m, i, least);
        if (!found || run_cut_before(&other, cut, m->rule))
            *cut = other;
        found = true;
    }
    return found;
}

/* Makes the next sample of a sublist the cut if it is before *cut, or if no cut was found yet. Returns whether there is
 * a cut. */
static bool next_sample_cut(const struct merge_ring *m, bool found, struct run_cut *cut)
{
    for (size_t i = 0; i < m->opt.n_arenas; i++) {
        const struct run_samples *s = &m->samples[i];
        if (s->next == s->n)
            continue;
        struct run_cut other = {s->keys[s->next], m->opt.arenas[i]->base, m->opt.runs.n + i};
        if (!found || run_cut_before(&other, cut, m->rule)) {
            *cut = other;
            found = true;
        }
    }
    return found;
}

static void note_flow(struct merge_ring *m, size_t run, struct merge_way slice)
{
    const struct merge_runs *runs = &m->opt.runs;
    struct run_flow *flow = &m->flows[run];
    flow->before += flow->n;
    flow->n = (double)(slice.end - slice.next);
    flow->first = slice.next->sort;
    flow->ends = !runs->first_key(runs->reader, run, m->taken[run], &flow->next);
    flow->last = slice.end[-1].sort;
    if (flow->ends)
        flow->next = flow->last;
}

/* Estimates the number of records of all ways before the cut. All slices that begin before the cut must be taken. */
static double records_before(const struct merge_ring *m, const struct run_cut *cut)
{
    uint64_t key = cut->key.sort;
    double records = 0;
    for (size_t i = 0; i < m->opt.n_arenas; i++)
        records += (double)(m->samples[i].next * m->sample_records);
    for (const struct run_flow *flow = m->flows; flow < m->flows + m->opt.runs.n; flow++) {
        double share = key <= flow->first ? 0 : key >= flow->next ? 1
                     : (double)(key - flow->first) / (double)(flow->next - flow->first);
        records += flow->before + flow->n * share;
    }
    return records;
}

/* Takes the last slice or sample out of the range again. */
static void take_back(struct merge_ring *m)
{
    size_t run = m->last.way;
    if (run >= m->opt.runs.n) {
        m->samples[run - m->opt.runs.n].next--;
        return;
    }
    m->taken[run]--;
    m->flows[run] = m->last_flow;
}

/* Takes the slice or sample that begins at the cut into the range. 0: it is not ready. */
static int take(struct merge_ring *m, bool idle, const struct run_cut *cut)
{
    const struct merge_runs *runs = &m->opt.runs;
    size_t run = cut->way;
    if (run >= runs->n) {
        m->samples[run - runs->n].next++;
        return 1;
    }
    if (!runs->ready(runs->reader, run, m->taken[run], idle))
        return 0;
    note_flow(m, run, runs->slice(runs->reader, run, m->taken[run]++));
    bool partial = runs->is_partial && runs->is_partial(runs->reader, run, m->taken[run] - 1);
    m->steps += partial ? m->steps_max : 1;      /* a range has at most one partial slice */
    return 1;
}

/* Takes the slice or sample that begins at the cut, inside the range, into the range. records: the estimated number of
 * the range's records before the cut. 0: it is not ready. */
static int take_inside(struct merge_ring *m, bool idle, const struct run_cut *cut, double records)
{
    struct run_flow flow = m->flows[cut->way < m->opt.runs.n ? cut->way : m->opt.runs.n];
    if (!take(m, idle, cut))
        return 0;
    m->has_last = true;
    m->last = *cut;
    m->last_flow = flow;
    m->last_records = records;
    return 1;
}

/* Returns whether the range should end at the cut. It should if it is large enough. It must if, with this slice, its
 * slices of the run would leave no buffer for the next slice, which may be needed to find a cut. All shared buffers may
 * be full of this range's slices until the next range is put. So the next range must have the slice that it begins
 * with, and the slices that are needed to find its end. */
static bool ends_at(const struct merge_ring *m, const struct run_cut *cut, double records)
{
    if (records >= (double)m->range_records || m->steps >= m->steps_max)
        return true;
    if (cut->way >= m->opt.runs.n)
        return false;
    const struct merge_runs *runs = &m->opt.runs;
    size_t taken = m->taken[cut->way], slices = taken + 1 - m->first[cut->way], to_find_cut = m->rule != NULL;
    return slices + to_find_cut > runs->n_buffers
        && !(runs->n_shared && runs->ready(runs->reader, cut->way, taken + 1 + to_find_cut, false));
}

/* Returns whether a range of this number of records would outgrow its list, so that it should end at the last cut. With
 * 26 runs and slices of a third of a list, 28 % of the ranges took a second pass, for which all threads waited; now 4 %
 * do. */
static bool ends_before(const struct merge_ring *m, double records)
{
    double most = (double)m->opt.n_records * 15 / 16, least = (double)m->range_records / 4;
    return m->has_last && records > most && m->last_records >= least && (double)m->range_records < most;
}

/* Returns the first slice of a run that can have keys of the next range. The next range begins at the cut, where the
 * planned range ends. */
static size_t first_slice(const struct merge_ring *m, const struct run_cut *cut, size_t run)
{
    const struct merge_runs *runs = &m->opt.runs;
    size_t taken = m->taken[run];
    if (m->planned_all || run == cut->way || m->first[run] == taken)
        return taken;
    if (m->flows[run].last != cut->key.sort)
        return m->flows[run].last < cut->key.sort ? taken : taken - 1;
    struct merge_way last = runs->slice(runs->reader, run, taken - 1);
    struct run_cut end = {last.end[-1], last.base, run};
    return run_cut_before(&end, cut, m->rule) ? taken : taken - 1;
}

/* Hands out the planned range, which ends at the cut `to`, and begins the next range there. */
static void end_range(struct merge_ring *m, const struct run_cut *to)
{
    struct range *range = &m->ranges[task_ring_next(&m->ring)];
    range->from = m->from;
    range->to = *to;
    range->is_first = m->is_first;
    range->is_last = m->planned_all;
    range->begun = range->whole = false;
    for (size_t i = 0; i < m->opt.runs.n; i++) {
        size_t needed = first_slice(m, to, i);
        range->spans[i] = (struct span){m->first[i], m->taken[i], needed};
        m->first[i] = needed;
    }
    m->before = records_before(m, to);
    m->from = *to;
    m->is_first = m->is_begun = m->has_last = false;
    m->steps = 0;
    task_ring_hand_out(&m->ring);
}

/* Returns whether a run was found to be out of order. Then no more ranges can be planned, because the next slice may
 * begin before the end of the slice that was taken last. */
static bool is_out_of_order(const struct merge_ring *m)
{
    const struct merge_runs *runs = &m->opt.runs;
    return runs->n && runs->in_order && !runs->in_order(runs->reader);
}

/* Plans a range. 1: done; 0: not yet, because slices must come first. If one slice is enough, it does not wait for a
 * second one. */
static int plan_range(struct merge_ring *m, bool idle)
{
    struct run_cut cut = {0};
    for (;;) {
        bool must = idle && (!m->opt.runs.one_is_enough || (m->is_first && m->steps == 0));
        if (!m->is_begun && !(m->is_begun = take(m, idle, &m->from)))
            return 0;
        if (is_out_of_order(m))
            return 0;
        int found = next_slice_cut(m, idle, &cut);
        if (found < 0)
            return 0;
        found = next_sample_cut(m, found, &cut);
        m->planned_all = !found;
        double records = found ? records_before(m, &cut) - m->before : 0;
        if (ends_before(m, records)) {
            take_back(m);
            end_range(m, &m->last);
            return 1;
        }
        if (!found || ends_at(m, &cut, records)) {
            end_range(m, &cut);
            return 1;
        }
        if (take_inside(m, must, &cut, records))
            continue;
        if (idle && !must)
            end_range(m, &cut);
        return idle && !must;
    }
}

/* ---------------------------------------------------------------- the merge */

/* Runs a task that other threads wait for, or may soon wait for. The sink's blocks come before ranges, because ranges
 * take long. */
bool merge_ring_help(void *ring)
{
    struct merge_ring *m = ring;
    record_sink_make_task(m->opt.sink);
    task_ring_make_task(&m->ring);
    if (!task_ring_empty(&m->ring) && task_ring_run(&m->ring, task_ring_oldest(&m->ring)))
        return true;
    const struct merge_runs *runs = &m->opt.runs;
    return record_sink_help(m->opt.sink) || (runs->n && runs->help(runs->reader)) || task_ring_help(&m->ring);
}

/* Releases the slices that later ranges do not need. */
static int leave_slices(struct merge_ring *m, const struct range *range)
{
    for (size_t i = 0; i < m->opt.runs.n; i++)
        if (m->opt.runs.leave(m->opt.runs.reader, i, range->spans[i].needed) < 0)
            return -1;
    return 0;
}

static bool oldest_is_merged(void *ring)
{
    const struct merge_ring *m = ring;
    return task_ring_state(&m->ring, task_ring_oldest(&m->ring)) == TASK_DONE;
}

/* Returns whether all slices of the oldest range are loaded completely, or there is an error. */
static bool oldest_is_filled(void *ring)
{
    const struct merge_ring *m = ring;
    const struct merge_runs *runs = &m->opt.runs;
    const struct range *range = &m->ranges[task_ring_oldest(&m->ring)];
    int filled = 1;
    for (size_t i = 0; i < runs->n && filled > 0; i++)
        filled = runs->fill(runs->reader, i, range->spans[i].end);
    return filled != 0;
}

/* The sink keeps the range's list until it has passed it; the range gets the next spare list. */
static void swap_list(struct merge_ring *m, struct range *range)
{
    struct spare_list *spare = &m->spare[m->next_spare];
    struct record_list list = range->list;
    range->list = spare->list;
    *spare = (struct spare_list){list, record_sink_mark(m->opt.sink)};
    m->next_spare = (m->next_spare + 1) % m->opt.n_spare;
}

/* Called when the records of the oldest range's list are in the sink. Submits the range again if it has more records;
 * otherwise frees its slot. */
static int put_back(struct merge_ring *m)
{
    uint32_t index = task_ring_oldest(&m->ring);
    struct range *range = &m->ranges[index];
    m->is_out = false;
    if (m->is_lent)
        swap_list(m, range);
    if (!range->whole) {
        task_ring_submit(&m->ring, index);
        return 0;
    }
    if (leave_slices(m, range) < 0)
        return -1;
    task_ring_take(&m->ring);
    return 0;
}

/* Returns whether the main thread need not wait for slices: a range is out, all ranges are planned, a range could be
 * planned now, no range can be planned any more, or there is an error. */
static bool can_go_on(void *ring)
{
    struct merge_ring *m = ring;
    return !task_ring_empty(&m->ring) || m->planned_all || is_out_of_order(m) || latch_tripped(m->opt.engine->latch)
        || plan_range(m, true);
}

static void plan_all(struct merge_ring *m)
{
    enum stage before = clocks_enter(m->opt.engine->clocks, STAGE_PLAN);
    if (m->opt.runs.n)
        m->opt.runs.refill(m->opt.runs.reader);
    while (!m->planned_all && !task_ring_full(&m->ring) && plan_range(m, false))
        ;
    clocks_leave(m->opt.engine->clocks, before, 0);
}

/* Plans as many ranges as possible: at least one range, unless all are planned. -1: stop. */
static int plan_ahead(struct merge_ring *m)
{
    plan_all(m);
    task_wait(can_go_on, merge_ring_help, m, m->opt.engine->clocks);
    return latch_tripped(m->opt.engine->latch) ? -1 : 0;
}

/* Merges the records after the last range, which are not in order, and fills the list like merge_ring_next(). */
static int go_on_greedily(struct merge_ring *m, struct record_list *list)
{
    if (m->is_greedy)
        return greedy_merge_next(&m->greedy, list);
    m->is_greedy = true;
    m->greedy = (struct greedy_merge){
        .runs = &m->opt.runs,
        .rule = m->rule,
        .from = m->is_first ? NULL : &m->from,
        .taken = m->taken,
        .max = m->opt.n_records,
        .engine = m->opt.engine,
        .help = merge_ring_help,
        .help_arg = m,
    };
    return greedy_merge_open(&m->greedy, m->first) < 0 ? -1 : greedy_merge_next(&m->greedy, list);
}

uint32_t merge_ring_given(const struct merge_ring *m)
{
    return task_ring_oldest(&m->ring);
}

int merge_ring_next(struct merge_ring *m, struct record_list *list)
{
    if (m->is_out && put_back(m) < 0)
        return -1;
    if (m->is_greedy || (task_ring_empty(&m->ring) && !m->planned_all && is_out_of_order(m)))
        return go_on_greedily(m, list);
    if (m->planned_all && task_ring_empty(&m->ring))
        return 0;
    if (plan_ahead(m) < 0)
        return -1;
    if (task_ring_empty(&m->ring))
        return m->planned_all ? 0 : go_on_greedily(m, list);
    task_wait(oldest_is_merged, merge_ring_help, m, m->opt.engine->clocks);
    if (m->opt.runs.is_partial && !latch_tripped(m->opt.engine->latch))
        task_wait(oldest_is_filled, merge_ring_help, m, m->opt.engine->clocks);
    if (latch_tripped(m->opt.engine->latch))
        return -1;
    if (m->opt.copy && m->opt.runs.is_partial)
        m->opt.copy(m->opt.arg, merge_ring_given(m), &m->ranges[merge_ring_given(m)].list);
    *list = m->ranges[task_ring_oldest(&m->ring)].list;
    m->is_out = true;
    m->is_lent = m->opt.n_spare > 0 && record_sink_passed(m->opt.sink, m->spare[m->next_spare].mark);
    if (!m->is_lent)
        list->fit = NULL;
    return 1;
}

int merge_ring_advance(struct merge_ring *m)
{
    if (m->is_out && put_back(m) < 0)
        return -1;
    plan_all(m);
    return !can_go_on(m) ? 0
         : latch_tripped(m->opt.engine->latch) || task_ring_empty(&m->ring) ? -1 : oldest_is_merged(m);
}
