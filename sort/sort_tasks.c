/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <htslib/hts_log.h>
#include "sort/sort_tasks.h"
#include "base/latch.h"
#include "merge/merge_ring.h"
#include "base/message.h"
#include "sort/minhash_run.h"
#include "spill/run_reader.h"
#include "order/sort_run.h"
#include "spill/spill.h"
#include "spill/spill_store.h"
#include "base/stats.h"
#include "write/record_sink.h"

/* Records per sublist: a sort of some 50 ms, short against any file that is worth
 * threads, and few enough sublists for one heap. Of long reads it takes fewer. */
enum { SUBLIST_RECORDS = 1 << 20 };
enum { REST_RECORDS = 1 << 14 };   /* and at the end so many at least: 0.4 ms */
static const size_t SUBLIST_BYTES = (size_t)512 << 20;
static const double PACKED_RATIO = 2;            /* of records as BAM has them to packed ones, about */

static struct bam_arena *other_arena(struct arena_pair *p)
{
    return &p->arenas[p->arena == &p->arenas[0]];
}

static int reserve_arenas(struct arena_pair *p)
{
    p->arena = &p->arenas[0];
    for (int i = 0; i < 2; i++) {
        atomic_store(&p->unsorted[i], 1);
        if (bam_arena_init(&p->arenas[i], p->opt.plan.arena_size) < 0)
            return latch_fail(p->opt.latch, "cannot reserve %zu MB of memory; use a smaller -m or -@",
                              p->opt.plan.arena_size >> 19);
        if (p->arenas[i].size < p->opt.plan.arena_size)
            p->opt.plan.arena_size = p->arenas[i].size;   /* so much there was */
    }
    bam_arena_reset(&p->arenas[0], p->opt.plan.arena_size);
    return 0;
}

static void run_sorting(void *pair, uint32_t index);

int arena_pair_open(struct arena_pair *p, const struct arena_pair_options *options)
{
    struct latch *latch = options->latch;
    struct spill_store_options store = {options->temp_prefixes, options->n_temp_prefixes, latch, options->stats};
    struct spill_options spill = {NULL, options->plan.merge_memory, options->n_threads, latch, options->stats};
    struct task_ring_options ring = {.n_slots = SORTINGS, .run = run_sorting, .arg = p, .run_releases = true};
    uint64_t room;
    *p = (struct arena_pair){.opt = *options};
    if (task_ring_open(&p->sorts, &ring) < 0)
        return latch_fail(latch, "out of memory");
    if (reserve_arenas(p) < 0 || !(spill.store = p->store = spill_store_open(&store))
        || !(p->spill = spill_open(&spill)))
        return -1;
    /* Whoever will need the place for certain is told now what is wrong with it. */
    return options->at_least > 2 * p->opt.plan.arena_size ? spill_store_prepare(p->store, &room) : 0;
}

void arena_pair_close(struct arena_pair *p)
{
    merge_ring_close(p->ring);
    run_reader_close(p->reader);
    spill_close(p->spill);
    spill_store_close(p->store);
    task_ring_close(&p->sorts, p->opt.latch && !latch_tripped(p->opt.latch));
    for (int i = 0; i < 2; i++)
        bam_arena_free(&p->arenas[i]);
}

void arena_pair_set_order(struct arena_pair *p, int32_t n_ref, const struct sort_rule *rule,
                          struct minhash *minhash)
{
    p->minhash = minhash;
    for (int i = 0; i < 2; i++) {
        p->arenas[i].n_ref = n_ref;
        p->arenas[i].rule = rule;
    }
}

/* ----------------------------------------------------------------- sorting */

/* One sublist of the arena less to be sorted; the last one, of an arena that is
 * not filled any more, lets it leave memory. */
static void count_sorted(struct arena_pair *p, const struct bam_arena *arena)
{
    if (atomic_fetch_sub(&p->unsorted[arena - p->arenas], 1) == 1 && !latch_tripped(p->opt.latch))
        spill_arena_is_sorted(p->spill);
}

static void sort_keys(struct arena_pair *p, const struct bam_arena *arena, struct bam_sublist sublist)
{
    struct bam_key_order order = bam_arena_order(arena);
    if (latch_tripped(p->opt.latch))
        return;
    enum stage before = stats_enter(p->opt.stats, STAGE_SORT);
    if (p->minhash)
        atomic_fetch_add(&p->turned, minhash_run(p->minhash, arena->base, sublist.keys, sublist.n));
    sort_run(sublist.keys, sublist.n, &order);
    stats_records(p->opt.stats, sublist.n);
    stats_leave(p->opt.stats, before, sublist.n * sizeof *sublist.keys);
    count_sorted(p, arena);
}

static void run_sorting(void *pair, uint32_t index)
{
    struct arena_pair *p = pair;
    sort_keys(p, p->sortings[index].arena, p->sortings[index].sublist);
    task_ring_release(&p->sorts, index);
}

/* Lists a sublist that was closed, to be sorted when it is due. */
static void add_sorting(struct arena_pair *p, struct bam_sublist sublist)
{
    uint32_t index = task_ring_slot(&p->sorts, p->n_sortings++);
    task_ring_wait(&p->sorts, index, TASK_FREE, NULL, p->opt.stats);
    struct sorting *sorting = &p->sortings[index];
    sorting->sublist = sublist;
    sorting->arena = p->arena;
    sorting->due = p->n_blocks + p->opt.plan.rings.source_slots;
    atomic_fetch_add(&p->unsorted[p->arena - p->arenas], 1);
}

/* Hands the sublists that have all their keys to tasks. */
static void sort_sublists(struct arena_pair *p, bool all_keys_are_there)
{
    while (task_ring_head(&p->sorts) < p->n_sortings
           && (all_keys_are_there || p->sortings[task_ring_next(&p->sorts)].due <= p->n_blocks))
        task_ring_hand_out(&p->sorts);
}

int arena_pair_sort(struct arena_pair *p)
{
    struct bam_sublist sublist;
    p->n_blocks++;
    int closed = bam_arena_close_sublist(p->arena, SUBLIST_RECORDS, SUBLIST_BYTES, &sublist);
    if (closed < 0)
        return latch_fail(p->opt.latch, "out of memory");
    if (closed)
        add_sorting(p, sublist);
    sort_sublists(p, false);
    return 0;
}

/* Closes and sorts all that there is, in as many sublists as there are threads: the others
 * have nothing else to do. All keys are there. */
static int sort_rest(struct arena_pair *p)
{
    size_t n = bam_arena_open_records(p->arena) / (size_t)p->opt.n_threads + 1;
    struct bam_sublist sublist;
    int cut;
    while ((cut = bam_arena_cut_sublist(p->arena, n < REST_RECORDS ? REST_RECORDS : n, &sublist)) > 0) {
        add_sorting(p, sublist);
        sort_sublists(p, true);
    }
    sort_sublists(p, true);
    return cut < 0 ? latch_fail(p->opt.latch, "out of memory") : 0;
}

/* ---------------------------------------------------------------- spilling */

/* From here on it is known that not all fits into memory. */
static int start_spilling(struct arena_pair *p)
{
    uint64_t room;
    double expected = p->opt.expected(p->opt.arg);
    p->spilling = true;
    if (spill_store_prepare(p->store, &room) < 0)
        return -1;
    p->beside = memory_shares_spilling(&p->opt.plan, expected, !bam_arena_empty(other_arena(p)));
    spill_store_use_memory(p->store, p->beside.store);
    spill_set_sizes(p->spill, p->beside.slice_size, p->beside.fan_in);
    if (bam_arena_empty(other_arena(p)))
        bam_arena_reset(other_arena(p), p->beside.arena_size);
    if (expected / PACKED_RATIO > (double)room)
        message_warning("about %.0f MB of temporary data are to be expected, but only %.0f MB are free where they go. "
                        "-T names another place", expected / PACKED_RATIO / 1e6, (double)room / 1e6);
    return 0;
}

/* Lets a full arena leave memory, in the background. */
static int send_off(struct arena_pair *p, const struct bam_arena *arena)
{
    if (spill_begin(p->spill, arena) < 0)
        return -1;
    count_sorted(p, arena);                      /* nothing more will be added */
    return 0;
}

static bool any_placed(const struct bam_arena *a)
{
    for (size_t i = 0; i < a->n_sublists; i++) {
        struct bam_key first = a->sublists[i].keys[0];
        if (bam_record_ref_id((const struct bam_record *)bam_key_record(a->base, first)) >= 0)
            return true;
    }
    return false;
}

static bool has_left(void *pair)
{
    const struct arena_pair *p = pair;
    return spill_is_done(p->spill);
}

static bool help_leaving(void *pair)
{
    struct arena_pair *p = pair;
    return spill_help(p->spill) || task_ring_help(&p->sorts);
}

/* Waits, working, for the arena that is on its way, and empties it. */
static int await_spill(struct arena_pair *p)
{
    const struct bam_arena *leaving = spill_arena(p->spill);
    if (!leaving)
        return 0;
    task_wait(has_left, help_leaving, p, p->opt.stats);
    if (spill_end(p->spill) < 0)
        return -1;
    ptrdiff_t i = leaving - p->arenas;
    p->placed = p->placed || any_placed(leaving);
    bam_arena_reset(&p->arenas[i], p->beside.arena_size);
    atomic_store(&p->unsorted[i], 1);
    return 0;
}

double arena_pair_expected(const struct arena_pair *p)
{
    const struct bam_arena *a = p->arena;
    double expected = p->opt.expected(p->opt.arg), keys = (double)(a->size - a->top);
    return expected > 0 && a->walked > 0 ? expected * (1 + keys / (double)a->walked) : 0;
}

uint64_t arena_pair_taken(const struct arena_pair *p)
{
    uint64_t taken = 0;
    for (int i = 0; i < 2; i++)
        taken += p->arenas[i].bottom + (p->arenas[i].size - p->arenas[i].top);
    return taken;
}

/* Whether what is still to come will fit; 1: yes, 0: no, -1: nobody knows. */
static int will_fit(const struct arena_pair *p)
{
    double expected = arena_pair_expected(p);
    return expected > 0 ? expected <= 2 * (double)p->arena->size : -1;
}

int arena_pair_hurry(struct arena_pair *p)
{
    bool full = p->arena->top - p->arena->bottom < p->arena->size / 4;
    if (p->spilling || !full || bam_arena_empty(other_arena(p)) || will_fit(p) > 0)
        return 0;
    return start_spilling(p) < 0 ? -1 : send_off(p, other_arena(p));
}

/* Goes on in the other arena. */
static int change_arena(struct arena_pair *p)
{
    struct bam_arena *full = p->arena, *next = other_arena(p);
    if (!p->spilling && (will_fit(p) == 0 || !bam_arena_empty(next)) && start_spilling(p) < 0)
        return -1;
    if (!bam_arena_empty(next) && !spill_arena(p->spill) && send_off(p, next) < 0)
        return -1;                               /* it was to fit, and does not */
    if (await_spill(p) < 0 || (p->spilling && send_off(p, full) < 0))
        return -1;
    if (bam_arena_carry(next, full) < 0)
        return latch_fail(p->opt.latch, "out of memory for a long record");
    p->arena = next;
    return 0;
}

int arena_pair_make_room(struct arena_pair *p, size_t room)
{
    if (sort_rest(p) < 0 || (!bam_arena_empty(p->arena) && change_arena(p) < 0))
        return -1;
    /* Nothing but the beginning of a record, and still not enough? */
    if (bam_arena_room(p->arena) < room && bam_arena_grow(p->arena, room) < 0)
        return latch_fail(p->opt.latch, "out of memory for a long record");
    return 0;
}

/* Waits, working, until the arena's sublists are sorted: it is not on its way out. */
struct sorted_wait {
    struct arena_pair *pair;
    const struct bam_arena *arena;
};

static bool is_sorted(void *wait)
{
    const struct sorted_wait *w = wait;
    return atomic_load(&w->pair->unsorted[w->arena - w->pair->arenas]) <= 1 || latch_tripped(w->pair->opt.latch);
}

static bool help_sorting(void *wait)
{
    const struct sorted_wait *w = wait;
    return task_ring_help(&w->pair->sorts);
}

static int await_sorted(struct arena_pair *p, const struct bam_arena *arena)
{
    struct sorted_wait wait = {p, arena};
    task_wait(is_sorted, help_sorting, &wait, p->opt.stats);
    return latch_tripped(p->opt.latch) ? -1 : 0;
}

int arena_pair_finish(struct arena_pair *p)
{
    /* What leaves is awaited first: after that neither is on its way. */
    if (sort_rest(p) < 0 || await_spill(p) < 0)
        return -1;
    return await_sorted(p, other_arena(p)) < 0 ? -1 : await_sorted(p, p->arena);
}

bool arena_pair_unplaced(const struct arena_pair *p)
{
    return !p->placed && !any_placed(&p->arenas[0]) && !any_placed(&p->arenas[1]);
}

/* ----------------------------------------------------------------- merging */

/* Brings the runs back into the memory of the arena that is free by now. */
static int open_runs(struct arena_pair *p, struct record_sink *sink, size_t *n)
{
    struct bam_arena *spare = other_arena(p);
    spill_runs(p->spill, n);
    if (*n == 0)
        return 0;
    size_t slice_size;
    if (spill_settle(p->spill, spare->base, spare->size, &slice_size) < 0)
        return -1;
    const struct spill_run *runs = spill_runs(p->spill, n);
    struct run_reader_options how = {runs, *n, p->store, sink, slice_size, p->beside.slice_size,
                                     spare->base, spare->size,
                                     p->opt.n_threads, p->opt.latch};
    if (hts_verbose > HTS_LOG_ERROR)             /* upstream's line: silent below --verbosity 2 */
        fprintf(stderr, "[bam_sort_core] merging from %zu files and %zu in-memory blocks...\n", *n, p->arena->n_sublists);
    p->reader = run_reader_open(&how);
    return p->reader ? 0 : -1;
}

int arena_pair_merge(struct arena_pair *p, struct record_sink *sink)
{
    size_t n_runs;
    if (open_runs(p, sink, &n_runs) < 0)
        return -1;
    struct merge_ring_options how = {
        .arenas = {other_arena(p), p->arena},
        .runs = p->reader ? run_reader_runs(p->reader) : (struct merge_runs){0},
        .sink = sink,
        .n_ranges = p->opt.plan.rings.merge_ranges,
        .n_records = p->opt.plan.rings.merge_records,
        .n_threads = p->opt.n_threads,
        .latch = p->opt.latch,
        .stats = p->opt.stats,
    };
    struct merge_list list;
    int merged;
    if (!(p->ring = merge_ring_open(&how)))
        return -1;
    while ((merged = merge_ring_next(p->ring, &list)) > 0)
        if (record_sink_put(sink, list.records, list.n) < 0)
            return -1;
    return merged;
}
