/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "base/engine.h"
#include "base/latch.h"
#include "sort/greedy_merge.h"
#include "sort/merge_ring.h"
#include "write/record_sink.h"
#include "base/clocks.h"
#include "base/task_ring.h"

/* A range with more records than its list holds is handed out again once the records of the list are put. */
struct range {
    struct planned_range at;     /* set by the main thread before READY for the first time; the claimer advances
                                  * `next` of the slices */
    bool begun;                  /* the heap is set up; cleared by the main thread before READY, set by the claimer */
    struct run_merge merge;      /* used by the claimer; has memory for all ways */
    struct record_list list;     /* merged, in order; written by the claimer before DONE */
    bool whole;                  /* the list has the range's last records; set by the claimer before DONE */
    const struct merge_ring *ring;
};

/* A list that does not belong to a range. */
struct spare_list {
    struct record_list list;
    uint64_t mark;               /* mark of the sink, after the list's records */
};

struct merge_ring {
    struct merge_ring_options opt;
    struct range_plan plan;      /* main thread only, but tasks read its rule */
    struct range *ranges;
    struct task_ring ring;       /* ring of the ranges: a range is handed out when planned, and taken back when put */
    struct spare_list *spare;    /* main thread only, as all fields below; used in turn */
    size_t next_spare;
    struct greedy_merge greedy;  /* the merge of runs that are not in order */
    bool is_greedy;              /* `greedy` is open */
    bool is_out;                 /* the list of the oldest range was taken ... */
    bool is_lent;                /* ... and the sink may use that list until it has passed it */
};

/* ------------------------------------------------------------------- memory */

static void run_range(void *ring, uint32_t index);

static int ring_alloc(struct merge_ring *m)
{
    const struct merge_ring_options *o = &m->opt;
    struct task_ring_options ring = {
        .n_slots = o->n_ranges,
        /* 0 for one or two threads: otherwise two threads would get ranges in pairs. */
        .n_threads = o->engine->n_threads > 2 ? o->engine->n_threads : 0,
        .large_batches = true,
        .run = run_range,
        .arg = m,
    };
    if (task_ring_open(&m->ring, &ring) < 0)
        return -1;
    m->ranges = calloc(o->n_ranges, sizeof *m->ranges);
    m->spare = calloc(o->n_spare + 1, sizeof *m->spare);
    if (!m->ranges || !m->spare)
        return -1;
    for (struct range *range = m->ranges; range < m->ranges + o->n_ranges; range++) {
        range->ring = m;
        range->at.slices = calloc(o->runs.n + 1, sizeof *range->at.slices);
        if (record_list_alloc(&range->list, o->n_records) < 0 || !range->at.slices
            || run_merge_init(&range->merge, m->plan.rule, m->plan.n_ways, 0) < 0)
            return -1;
    }
    for (uint32_t i = 0; i < o->n_spare; i++)
        if (record_list_alloc(&m->spare[i].list, o->n_records) < 0)
            return -1;
    return 0;
}

static int open_plan(struct merge_ring *m)
{
    const struct merge_ring_options *o = &m->opt;
    struct range_plan_options how = {
        .arenas = o->arenas,
        .n_arenas = o->n_arenas,
        .runs = &o->runs,
        .n_records = o->n_records,
        .n_wanted = o->copy ? o->n_wanted : SIZE_MAX,
        .engine = o->engine,
    };
    return range_plan_open(&m->plan, &how);
}

struct merge_ring *merge_ring_open(const struct merge_ring_options *options)
{
    struct merge_ring *m = calloc(1, sizeof *m);
    if (m) {
        m->opt = *options;
        enum stage before = clocks_enter(m->opt.engine->clocks, STAGE_PLAN);
        int result = open_plan(m) < 0 || ring_alloc(m) < 0 ? -1 : 0;
        if (result == 0)
            range_plan_begin(&m->plan);          /* its tasks may be late, so nothing may fail after it */
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
        free(m->ranges[i].at.slices);
        record_list_free(&m->ranges[i].list);
        run_merge_free(&m->ranges[i].merge);
    }
    for (uint32_t i = 0; m->spare && i < m->opt.n_spare; i++)
        record_list_free(&m->spare[i].list);
    range_plan_close(&m->plan);
    if (m->is_greedy)
        greedy_merge_close(&m->greedy);
    free(m->spare);
    task_ring_close(&m->ring, !latch_tripped(m->opt.engine->latch));
    free(m->ranges);
    free(m);
}

size_t merge_ring_memory(uint32_t n_ranges, uint32_t n_spare, uint32_t n_records, size_t n_ways, size_t in_arenas)
{
    size_t way = sizeof(struct run_slices) + sizeof(struct merge_way) + sizeof(struct merge_head);
    return sizeof(struct merge_ring) + task_ring_memory(n_ranges) + range_plan_memory(n_ways, n_records, in_arenas)
         + n_ranges * (sizeof(struct range) + n_ways * way)
         + n_spare * sizeof(struct spare_list) + (n_ranges + n_spare) * record_list_memory(n_records);
}

/* ------------------------------------------------------- tasks: one range */

/* Returns the keys of a way that belong to the range. If the cut is the beginning of a slice of the same run, no search
 * is needed, because the range has complete slices of that run. */
static struct merge_way keys_in_range(const struct range *range, size_t way, struct merge_way keys)
{
    const struct merge_ring *m = range->ring;
    bool is_run = way < m->opt.runs.n;
    const struct planned_range *at = &range->at;
    if (!at->is_last && !(is_run && way == at->to.way))
        keys.end = run_cut_find(&at->to, m->plan.rule, keys, way);
    if (!at->is_first && !(is_run && way == at->from.way))
        keys.next = run_cut_find(&at->from, m->plan.rule, keys, way);
    return keys;
}

static int next_slice(void *arg, size_t number, struct merge_way *way)
{
    struct range *range = arg;
    const struct merge_runs *runs = &range->ring->opt.runs;
    struct run_slices *slices = &range->at.slices[number];
    if (number >= runs->n || slices->next == slices->end)
        return 0;
    *way = keys_in_range(range, number, runs->slice(runs->reader, number, slices->next++));
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
        if (m->opt.runs.leave(m->opt.runs.reader, i, range->at.slices[i].needed) < 0)
            return -1;
    return 0;
}

static bool oldest_is_merged(const struct merge_ring *m)
{
    return task_ring_state(&m->ring, task_ring_oldest(&m->ring)) == TASK_DONE;
}

/* Returns whether all slices of the oldest range are loaded completely, or there is an error. */
static bool oldest_is_filled(const struct merge_ring *m)
{
    const struct merge_runs *runs = &m->opt.runs;
    const struct range *range = &m->ranges[task_ring_oldest(&m->ring)];
    int filled = 1;
    for (size_t i = 0; i < runs->n && filled > 0; i++)
        filled = runs->fill(runs->reader, i, range->at.slices[i].end);
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

/* Plans a range and hands it out. False: not yet, because slices must come first. */
static bool plan_range(struct merge_ring *m, bool idle)
{
    struct range *range = &m->ranges[task_ring_next(&m->ring)];
    if (!range_plan_next(&m->plan, idle, &range->at))
        return false;
    range->begun = range->whole = false;
    task_ring_hand_out(&m->ring);
    return true;
}

/* Returns whether the main thread need not wait for slices: a range is out, all ranges are planned, a range could be
 * planned now, or no range can be planned any more. */
static bool can_go_on(struct merge_ring *m)
{
    return !task_ring_empty(&m->ring) || m->plan.planned_all || range_plan_is_out_of_order(&m->plan)
        || plan_range(m, true);
}

/* Plans as many ranges as possible, and loads slices for the next ones. */
static void plan_all(struct merge_ring *m)
{
    if (!m->opt.runs.n && (m->plan.planned_all || task_ring_full(&m->ring)))
        return;
    enum stage before = clocks_enter(m->opt.engine->clocks, STAGE_PLAN);
    if (m->opt.runs.n)
        m->opt.runs.refill(m->opt.runs.reader);
    while (!m->plan.planned_all && !task_ring_full(&m->ring) && plan_range(m, false))
        ;
    clocks_leave(m->opt.engine->clocks, before, 0);
}

/* Begins to merge the records after the last range, which are not in order. */
static int begin_greedy(struct merge_ring *m)
{
    m->is_greedy = true;
    m->greedy = (struct greedy_merge){
        .runs = &m->opt.runs,
        .rule = m->plan.rule,
        .from = m->plan.is_first ? NULL : &m->plan.from,
        .taken = m->plan.taken,
        .max = m->opt.n_records,
        .list = m->ranges[0].list,               /* no range is out, and none will be */
        .engine = m->opt.engine,
    };
    return greedy_merge_open(&m->greedy, m->plan.first);
}

uint32_t merge_ring_given(const struct merge_ring *m)
{
    return task_ring_oldest(&m->ring);
}

enum chunk_state merge_ring_advance(void *ring)
{
    struct merge_ring *m = ring;
    if (m->is_out && put_back(m) < 0)
        return CHUNK_FAILED;
    if (m->is_greedy)
        return greedy_merge_advance(&m->greedy);
    if (!task_ring_empty(&m->ring) || !range_plan_is_out_of_order(&m->plan))
        plan_all(m);
    if (latch_tripped(m->opt.engine->latch))
        return CHUNK_FAILED;
    if (!can_go_on(m))
        return CHUNK_AWAITED;
    if (task_ring_empty(&m->ring))
        return m->plan.planned_all ? CHUNK_NONE : begin_greedy(m) < 0 ? CHUNK_FAILED : greedy_merge_advance(&m->greedy);
    if (!oldest_is_merged(m) || (m->opt.runs.is_partial && !oldest_is_filled(m)))
        return CHUNK_AWAITED;
    return latch_tripped(m->opt.engine->latch) ? CHUNK_FAILED : CHUNK_MADE;
}

int merge_ring_take(void *ring, struct record_list *list)
{
    struct merge_ring *m = ring;
    if (m->is_greedy) {
        greedy_merge_take(&m->greedy, list);
        return 0;
    }
    *list = m->ranges[task_ring_oldest(&m->ring)].list;
    if (m->opt.copy && m->opt.runs.is_partial)
        m->opt.copy(m->opt.arg, merge_ring_given(m), list);
    m->is_out = true;
    m->is_lent = m->opt.n_spare > 0 && record_sink_passed(m->opt.sink, m->spare[m->next_spare].mark);
    if (!m->is_lent)
        list->fit = NULL;
    return 0;
}

int merge_ring_next(struct merge_ring *m, struct record_list *list)
{
    const struct list_stream stream = {merge_ring_advance, merge_ring_take, merge_ring_help, NULL, m};
    return list_stream_next(&stream, list, m->opt.engine);
}
