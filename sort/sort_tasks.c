/* SPDX-License-Identifier: MIT */
#include "base/engine.h"
#include "base/latch.h"
#include "base/clocks.h"
#include "bam/record_checksum.h"
#include "order/minhash.h"
#include "order/sublist_sort.h"
#include "sort/sort_tasks.h"

/* Records per sublist: SUBLIST_RECORDS take some 50 ms to sort, and keep sublists few enough for one heap. At the end
 * of the input, a sublist has at least REST_RECORDS, which take 0.4 ms. */
enum { SUBLIST_RECORDS = 1 << 20, REST_RECORDS = 1 << 14 };
static const size_t SUBLIST_BYTES = (size_t)512 << 20;   /* a sublist of long reads ends at this size */

/* Counts down by one: a sublist is sorted, or no more sublists will come, which the extra 1 stood for. At 0 no other
 * thread changes the counter until the arena is spilled and filled again. So the counter is set to 1 for that now. */
void sort_tasks_end_arena(struct sort_tasks *p, const struct bam_arena *arena)
{
    _Atomic uint32_t *unsorted = &p->unsorted[arena - p->opt.arenas->each];
    if (atomic_fetch_sub(unsorted, 1) > 1 || latch_tripped(p->opt.engine->latch))
        return;
    atomic_store(unsorted, 1);
    p->opt.arena_is_sorted(p->opt.arg);
}

/* -M: ranks a read and turns it. Returns the change of the checksum of the record as it is written. */
static uint64_t rank_record(const struct sort_tasks_options *o, struct bam_record *r, uint64_t *key)
{
    const struct minhash *m = o->minhash;
    struct minhash_rank rank;
    size_t size = bam_record_size(r);
    uint64_t before = record_checksum((const uint8_t *)r, size);
    minhash_rank(m, r, &rank);
    minhash_apply(r, &rank);
    *key = minhash_key(m, r);
    minhash_finish(r);
    uint64_t after = record_checksum((const uint8_t *)r, size);
    if (o->keep_ranks)
        minhash_keep(r, &rank);
    return after - before;
}

/* -M: gives each key of a sublist its -M value, and turns reads without a reference according to their ranks. This is
 * done only when the sublist is closed, because a walk from a wrong guess must change nothing. Returns the sum of
 * rank_record(). */
static uint64_t rank_sublist(const struct sort_tasks_options *o, uint8_t *base, struct bam_sublist sublist)
{
    uint64_t delta = 0;
    for (size_t i = 0; i < sublist.n; i++) {
        struct bam_key *key = &sublist.keys[i];
        struct bam_record *r = (struct bam_record *)(base + (key->place >> BAM_KEY_SIZE_BITS));
        if (minhash_applies(r) && !o->are_ranked)
            delta += rank_record(o, r, &key->sort);
        else
            key->sort = minhash_key(o->minhash, r);
    }
    return delta;
}

void sort_tasks_finish_record(uint8_t *record)
{
    if (minhash_applies(bam_record_at(record)))
        minhash_finish((struct bam_record *)record);
}

static void sort_sublist(struct sort_tasks *p, const struct bam_arena *arena, struct bam_sublist sublist)
{
    struct bam_key_order order = bam_arena_order(arena);
    if (latch_tripped(p->opt.engine->latch))
        return;
    enum stage before = clocks_enter(p->opt.engine->clocks, STAGE_SORT);
    if (p->opt.minhash)
        atomic_fetch_add(&p->turned, rank_sublist(&p->opt, arena->base, sublist));
    sublist_sort(sublist.keys, sublist.n, &order);
    clocks_records(p->opt.engine->clocks, sublist.n);
    clocks_leave(p->opt.engine->clocks, before, sublist.n * sizeof *sublist.keys);
    sort_tasks_end_arena(p, arena);
}

static void run_sort(void *sorts, uint32_t index)
{
    struct sort_tasks *p = sorts;
    sort_sublist(p, p->tasks[index].arena, p->tasks[index].sublist);
    task_ring_release(&p->ring, index);
}

int sort_tasks_open(struct sort_tasks *p, const struct sort_tasks_options *options)
{
    struct task_ring_options ring = {.n_slots = SORT_TASKS_MAX, .run = run_sort, .arg = p, .run_releases = true};
    *p = (struct sort_tasks){.opt = *options, .unsorted = {1, 1}};
    return task_ring_open(&p->ring, &ring) < 0 ? latch_fail(options->engine->latch, "out of memory") : 0;
}

void sort_tasks_close(struct sort_tasks *p)
{
    task_ring_close(&p->ring, p->opt.engine && !latch_tripped(p->opt.engine->latch));
}

/* Lists a closed sublist, which is to be sorted when `behind` more blocks are taken back. */
static void add(struct sort_tasks *p, struct bam_sublist sublist, uint32_t behind)
{
    const struct bam_arena *arena = p->opt.arenas->filled;
    uint32_t index = task_ring_slot(&p->ring, p->n_closed++);
    task_ring_wait(&p->ring, index, TASK_FREE, NULL, p->opt.engine->clocks);
    p->tasks[index] = (struct sort_task){p->n_blocks + behind, sublist, arena};
    atomic_fetch_add(&p->unsorted[arena - p->opt.arenas->each], 1);
}

/* Hands all sublists whose keys are complete to tasks. */
static void hand_out(struct sort_tasks *p, bool all_keys_are_there)
{
    while (task_ring_head(&p->ring) < p->n_closed
           && (all_keys_are_there || p->tasks[task_ring_next(&p->ring)].due <= p->n_blocks))
        task_ring_hand_out(&p->ring);
}

/* Returns each thread's share of the records that are to come, so that the last sublists are small. They are not so
 * small that a long input has many more sublists to merge. */
static size_t records_wanted(const struct sort_tasks *p, uint64_t to_come)
{
    uint64_t n_threads = (uint64_t)p->opt.engine->n_threads, least = SUBLIST_RECORDS / (4 * n_threads);
    uint64_t share = to_come / n_threads;
    least = least < REST_RECORDS ? REST_RECORDS : least;
    if (n_threads == 1)
        return SUBLIST_RECORDS;
    return share > SUBLIST_RECORDS ? SUBLIST_RECORDS : share < least ? least : share;
}

int sort_tasks_close_sublist(struct sort_tasks *p, uint32_t behind, uint64_t to_come)
{
    struct bam_sublist sublist;
    p->n_blocks++;
    int closed = bam_arena_close_sublist(p->opt.arenas->filled, records_wanted(p, to_come), SUBLIST_BYTES, &sublist);
    if (closed < 0)
        return latch_fail(p->opt.engine->latch, "out of memory");
    if (closed)
        add(p, sublist, behind);
    hand_out(p, false);
    return 0;
}

int sort_tasks_close_rest(struct sort_tasks *p)
{
    size_t n = bam_arena_open_records(p->opt.arenas->filled) / (size_t)p->opt.engine->n_threads + 1;
    struct bam_sublist sublist;
    int cut;
    if (n < REST_RECORDS)
        n = REST_RECORDS;
    while ((cut = bam_arena_cut_sublist(p->opt.arenas->filled, n, &sublist)) > 0) {
        add(p, sublist, 0);
        hand_out(p, true);
    }
    hand_out(p, true);
    return cut < 0 ? latch_fail(p->opt.engine->latch, "out of memory") : 0;
}

bool sort_tasks_help(void *sorts)
{
    struct sort_tasks *p = sorts;
    return task_ring_help(&p->ring);
}

static bool all_sorted(void *sorts)
{
    struct sort_tasks *p = sorts;
    return (atomic_load(&p->unsorted[0]) <= 1 && atomic_load(&p->unsorted[1]) <= 1)
        || latch_tripped(p->opt.engine->latch);
}

int sort_tasks_finish(struct sort_tasks *p)
{
    task_wait(all_sorted, sort_tasks_help, p, p->opt.engine->clocks);
    return latch_tripped(p->opt.engine->latch) ? -1 : 0;
}
