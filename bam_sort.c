/* SPDX-License-Identifier: MIT */
/* The driver: how a file of alignments gets sorted.
 *
 *   read_and_sort()                                     merge_and_write()
 *
 *   in.bam --> blocks --> arena --> sublists --> runs --> ranges --> blocks --> out.bam
 *              inflate    records   sort         only     merge      deflate    renamed
 *              tasks (1)  and keys  tasks (2)    what     tasks (4)  tasks (5)  when whole
 *                         (2)                    does not
 *                                                fit (3)
 *
 * Whatever the input is, it comes as blocks: bgzf_source reads BAM ahead, sam_reader parses SAM, hts_reader has CRAM
 * decoded. Whatever the output is, records go to record_sink: bgzf_sink for BAM, hts_writer for the rest.
 *
 * The main thread runs the five loops below, which hand work to tasks and take it back in order. task_team() holds
 * the only `omp parallel`; all else is tasks, and a thread that reads a pipe. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <htslib/hts_log.h>
#include "bam_sort.h"
#include "bam/far_pos.h"
#include "base/latch.h"
#include "base/machine.h"
#include "base/memory_watch.h"
#include "base/message.h"
#include "base/progress.h"
#include "base/sort_opts.h"
#include "base/stats.h"
#include "base/task_ring.h"
#include "merge/merge_ring.h"
#include "order/minhash.h"
#include "order/sort_key.h"
#include "plan/memory_plan.h"
#include "plan/sort_limits.h"
#include "read/block_reader.h"
#include "read/sort_input.h"
#include "report/sort_report.h"
#include "sort/arenas.h"
#include "sort/minhash_run.h"
#include "sort/sort_tasks.h"
#include "spill/spill_policy.h"
#include "write/record_sink.h"
#include "write/sort_files.h"

static const uint64_t HEADER_LEAST = (uint64_t)64 << 20;     /* with little memory too: half a million references */

struct bam_sort {
    const struct sort_opts *opts;
    struct latch latch;
    struct stats *stats;
    struct sort_report report;
    struct progress progress;
    struct memory_watch watch;
    struct sort_inputs in;
    struct sort_files out;
    struct memory_rings rings;   /* memory, before anything is opened ... */
    struct memory_plan plan;     /* ... and once the headers are known */
    struct arenas arenas;        /* the memory for records */
    struct block_reader reader;  /* blocks of the input, into an arena */
    struct sort_tasks sorts;
    struct spill_policy spill;
    struct merge_ring *merge;
    sam_hdr_t *sam;              /* header of the first input, then of the output */
    struct sort_rule *rule;
    struct minhash *minhash;     /* of -M; else NULL */
    _Atomic bool far;            /* a record has positions beyond 32 bits; its reader sets it */
};

/* ---------------------------------------------------- reading and sorting */

/* Takes the oldest block back and lists its records. Every 2^20 records make a sublist: keys of an arena that one task
 * sorts. wait: also if the block is not inflated yet. 1: done; 0: none is ready, or, with wait, none is out; -1: stop. */
static int take_block(struct bam_sort *s, bool wait)
{
    int taken = block_reader_take(&s->reader, wait);
    return taken > 0 && sort_tasks_close_sublist(&s->sorts) < 0 ? -1 : taken;
}

/* Loop 2: while there is an inflated block (wait: while there is any block), takes it back, in file order. */
static int take_blocks(struct bam_sort *s, bool wait)
{
    int taken;
    while ((taken = take_block(s, wait)) > 0)
        ;
    return taken;
}

static struct spill_outlook outlook(struct bam_sort *s)
{
    const struct bam_arena *a = s->arenas.filled;
    double records = block_reader_expected(&s->reader);
    return (struct spill_outlook){
        .records = records,
        .with_keys = arenas_with_keys(&s->arenas, records),
        .arena_size = a->size,
        .arena_free = a->top - a->bottom,
        .other_is_empty = bam_arena_empty(arenas_other(&s->arenas)),
    };
}

/* Loop 3, one turn: an arena leaves memory as a run, that is, sorted and packed, in a temporary file or in memory that
 * is to spare. Tasks write it, as soon as its sublists are sorted, while the other arena is filled. */
static int begin_run(struct bam_sort *s, const struct bam_arena *arena)
{
    if (spill_policy_leave(&s->spill, arena) < 0)
        return -1;
    sort_tasks_end_arena(&s->sorts, arena);
    return 0;
}

static int end_run(struct bam_sort *s)
{
    if (!s->spill.spilling)
        return 0;
    if (spill_policy_await(&s->spill) < 0)
        return -1;
    arenas_empty_other(&s->arenas, s->spill.sizes.arena_size);
    return 0;
}

/* The filled arena is full: goes on in the other one. Loop 3 turns if not all records fit into the two: the older
 * arena has left before it is filled again, and the full one begins to leave. */
static int change_arena(struct bam_sort *s)
{
    const struct bam_arena *older = arenas_other(&s->arenas);
    struct spill_outlook now = outlook(s);
    if (spill_policy_decide(&s->spill, &now) < 0)
        return -1;
    if (s->spill.spilling) {
        bool stays = !bam_arena_empty(older) && !spill_policy_busy(&s->spill);   /* all was to fit, and does not */
        if ((stays && begin_run(s, older) < 0) || end_run(s) < 0 || begin_run(s, s->arenas.filled) < 0)
            return -1;
    }
    if (arenas_change(&s->arenas, &s->latch) < 0)
        return -1;
    block_reader_set_arena(&s->reader, s->arenas.filled);
    return 0;
}

/* The older arena may leave before the other one is full, so that nobody waits for it then. */
static int hurry(struct bam_sort *s)
{
    const struct bam_arena *older = arenas_other(&s->arenas);
    if (s->spill.spilling || bam_arena_empty(older))
        return 0;
    struct spill_outlook now = outlook(s);
    int leaves = spill_policy_hurry(&s->spill, &now);
    return leaves > 0 ? begin_run(s, older) : leaves;
}

/* Makes room for size bytes of records in the filled arena. A full arena is changed for the other one, after all blocks
 * are taken back and all records are in sublists. */
static int make_room(struct bam_sort *s, size_t size)
{
    if (hurry(s) < 0)
        return -1;
    if (bam_arena_room(s->arenas.filled) < size && take_blocks(s, true) < 0)
        return -1;
    if (bam_arena_room(s->arenas.filled) >= size)
        return 0;
    if (sort_tasks_close_rest(&s->sorts) < 0 || (!bam_arena_empty(s->arenas.filled) && change_arena(s) < 0))
        return -1;
    return arenas_grow(&s->arenas, size, &s->latch);
}

static void show_progress(struct bam_sort *s)
{
    uint64_t taken = arenas_taken(&s->arenas);
    progress_tick(&s->progress);
    if (memory_watch_due(&s->watch, taken))
        memory_watch_look(&s->watch, taken, arenas_with_keys(&s->arenas, block_reader_expected(&s->reader)));
}

/* Loop 1: while there is a block (up to 64 KiB of records, compressed on its own), makes room for it, takes its place in
 * the arena, and hands it to an inflate task, which also finds its records. */
static int deal_blocks(struct bam_sort *s, struct sort_input *in)
{
    uint32_t size;
    int found;
    while ((found = bgzf_source_peek(in->source, &size)) > 0) {
        if ((bgzf_source_ring_full(in->source) && take_block(s, true) < 0) || make_room(s, size) < 0)
            return -1;
        bgzf_source_hand_out(in->source, bam_arena_take(s->arenas.filled, size));
        show_progress(s);
        if (take_blocks(s, false) < 0)
            return -1;
    }
    return found < 0 ? -1 : take_blocks(s, true);
}

static int read_input(struct bam_sort *s, struct sort_input *in)
{
    block_reader_begin(&s->reader, in);
    if (make_room(s, in->header.rest_size) < 0 || block_reader_start(&s->reader, s->rule) < 0)
        return -1;
    enum stage before = stats_enter(s->stats, STAGE_DEAL);
    int result = deal_blocks(s, in);
    stats_leave(s->stats, before, 0);
    return result < 0 ? -1 : block_reader_end(&s->reader);
}

/* Afterwards all records are in sorted sublists of the two arenas, or in runs and the filled arena. */
static int read_and_sort(struct bam_sort *s)
{
    stats_phase(s->stats, PHASE_READ);
    memory_watch_start(&s->watch, machine_memory(), 2 * s->arenas.filled->size, block_reader_least(&s->reader));
    block_reader_set_arena(&s->reader, s->arenas.filled);
    for (size_t i = 0; i < s->in.n; i++)
        if (read_input(s, &s->in.each[i]) < 0)
            return -1;
    return sort_tasks_close_rest(&s->sorts) < 0 || end_run(s) < 0 || sort_tasks_finish(&s->sorts) < 0 ? -1 : 0;
}

/* ---------------------------------------------------- merging and writing */

/* Runs come back, a slice at a time, into the arena that is free by now. */
static int begin_merge(struct bam_sort *s)
{
    struct bam_arena *spare = arenas_other(&s->arenas);
    struct merge_ring_options how = {
        .arenas = {spare, s->arenas.filled},
        .sink = s->out.sink,
        .n_ranges = s->rings.merge_ranges,
        .n_records = s->rings.merge_records,
        .n_threads = s->opts->n_threads,
        .latch = &s->latch,
        .stats = s->stats,
    };
    if (spill_policy_read_back(&s->spill, spare->base, spare->size, s->out.sink, &how.runs) < 0)
        return -1;
    if (how.runs.n > 0 && hts_verbose > HTS_LOG_ERROR)   /* upstream's line: silent below --verbosity 2 */
        fprintf(stderr, "[bam_sort_core] merging from %zu files and %zu in-memory blocks...\n", how.runs.n,
                s->arenas.filled->n_sublists);
    return (s->merge = merge_ring_open(&how)) ? 0 : -1;
}

/* Loop 4: while there is a merged range (a part of the order, which a task merged from all sublists and runs), puts its
 * records to the sink. Loop 5 is inside the sink: when a block is full, bgzf_sink_flush() hands it to a
 * deflate task, and a ticket gives it its place in the file. */
static int merge_ranges(struct bam_sort *s)
{
    struct merge_list list;
    int merged;
    while ((merged = merge_ring_next(s->merge, &list)) > 0)
        if (record_sink_put(s->out.sink, list.records, list.n) < 0)
            return -1;
    return merged;
}

/* Number and checksum of the records that came in must be those of the records that go out. */
static int merge_and_write(struct bam_sort *s)
{
    const struct bam_arena *all = s->arenas.filled;
    stats_phase(s->stats, PHASE_WRITE);
    if (s->minhash && !minhash_decides(s->minhash))
        record_sink_set_finish(s->out.sink, minhash_run_finish);
    if (sort_files_header(&s->out, s->sam, arenas_unplaced(&s->arenas)) < 0 || begin_merge(s) < 0
        || merge_ranges(s) < 0)
        return -1;
    return sort_files_finish(&s->out, all->n_records, all->checksum + s->sorts.turned);
}

/* ------------------------------------------------- opening everything */

static int prepare_minhash(struct bam_sort *s)
{
    if (s->opts->order.by != SORT_MINHASH)
        return 0;
    if (sam_hdr_nref(s->sam) >= MINHASH_REF_MAX)
        return latch_fail(&s->latch, "%s: too many references for -M", sort_opts_input(s->opts));
    if (!(s->minhash = minhash_new(&s->opts->order)))
        return latch_fail(&s->latch, "the index of minimisers (-M, -I) cannot be made");
    return 0;
}

static int prepare_order(struct bam_sort *s)
{
    s->rule = sort_rule_new(&s->opts->order, s->sam);
    if (!s->rule)
        return latch_fail(&s->latch, "out of memory");
    bool keys_do = s->minhash ? minhash_decides(s->minhash) : sort_key_decides(s->rule);
    if (keys_do && sort_inputs_converted(&s->in) && far_pos_fits(&s->opts->out.format)) {
        sort_key_decides_until(s->rule, &s->far);
        keys_do = false;
    }
    arenas_set_order(&s->arenas, sam_hdr_nref(s->sam), keys_do ? NULL : s->rule);
    return 0;
}

static struct memory_rings plan_rings(const struct sort_opts *opts)
{
    struct memory_job job = {
        .budget = sort_limits_memory(opts),
        .n_threads = opts->n_threads,
        .level = opts->out.level,
        .n_inputs = 1 + opts->n_more,
        .found = block_reader_slot_memory(),
        .thread_space = sort_limits_thread_space(),
    };
    return memory_plan_rings(&job);
}

/* What is known with the headers, and the index of -I. */
static struct memory_plan plan_memory(const struct bam_sort *s)
{
    struct memory_use use = {
        .header = sort_inputs_header_size(&s->in),
        .references = sort_inputs_references(&s->in),
        .htslib = sort_inputs_memory(&s->in) + sort_files_memory(&s->out, s->sam, s->rings.job.budget)
                + (s->minhash ? minhash_memory(s->minhash) : 0),
        .stats = stats_memory(s->opts->n_threads, sort_report_detail(s->opts)),
    };
    return memory_plan_make(&s->rings, &use);
}

static int open_inputs(struct bam_sort *s)
{
    uint64_t budget = s->rings.job.budget;
    struct sort_inputs_options how = {
        .opts = s->opts,
        .rings = s->rings,
        .header_max = budget > HEADER_LEAST ? budget : HEADER_LEAST,
        .far = far_pos_fits(&s->opts->out.format) ? &s->far : NULL,
        .latch = &s->latch,
        .stats = s->stats,
    };
    if (sort_inputs_open(&s->in, &how) < 0)
        return -1;
    s->sam = s->in.each->header.sam;
    return 0;
}

static int open_spill(struct bam_sort *s)
{
    struct spill_policy_options how = {
        .temp_prefixes = s->opts->temp_prefixes,
        .n_temp_prefixes = s->opts->n_temp_prefixes,
        .at_least = block_reader_least(&s->reader),
        .arena_size = s->arenas.filled->size,
        .slice_size = s->plan.slice_size,
        .merge_memory = s->plan.merge_memory,
        .n_threads = s->opts->n_threads,
        .help = sort_tasks_help,
        .arg = &s->sorts,
        .latch = &s->latch,
        .stats = s->stats,
    };
    return spill_policy_open(&s->spill, &how);
}

/* The arenas come last but one: they take what a limit on addresses leaves. */
static int reserve_memory(struct bam_sort *s)
{
    struct block_reader_options reader = {
        .inputs = &s->in,
        .n_slots = s->rings.source_slots,
        .size_hint = s->opts->size_hint,
        .latch = &s->latch,
        .stats = s->stats,
    };
    struct sort_tasks_options sorts = {
        .arenas = &s->arenas,
        .source_slots = s->rings.source_slots,
        .n_threads = s->opts->n_threads,
        .minhash = s->minhash,
        .arena_is_sorted = spill_policy_arena_is_sorted,
        .arg = &s->spill,
        .latch = &s->latch,
        .stats = s->stats,
    };
    return block_reader_open(&s->reader, &reader) < 0 || sort_tasks_open(&s->sorts, &sorts) < 0
        || arenas_open(&s->arenas, s->plan.arena_size, &s->latch) < 0 || open_spill(s) < 0 ? -1 : 0;
}

/* What is known before reading of how much there is to do. */
static void expect_progress(struct bam_sort *s)
{
    s->progress.file_bytes = (double)sort_inputs_length(&s->in);
    s->progress.data_bytes = (double)s->opts->size_hint;
    record_sink_set_progress(s->out.sink, &s->progress);
}

/* Opens and allocates all that may fail, before the work that must not; first
 * what can be told before a pipe is waited for. */
static int open_all(struct bam_sort *s)
{
    if (!(s->stats = stats_new(s->opts->n_threads, sort_report_detail(s->opts))))
        return latch_fail(&s->latch, "out of memory");
    stats_phase(s->stats, PHASE_OPEN);
    progress_start(&s->progress, s->opts->progress, s->stats);
    s->rings = plan_rings(s->opts);
    if (sort_files_open(&s->out, s->opts, &s->rings, &s->latch, s->stats) < 0
        || sort_report_open(&s->report, s->opts, &s->latch) < 0 || open_inputs(s) < 0
        || prepare_minhash(s) < 0)
        return -1;
    s->plan = plan_memory(s);
    if (reserve_memory(s) < 0 || prepare_order(s) < 0
        || sort_files_prepare(&s->out, s->sam, s->minhash ? NULL : s->rule) < 0)
        return -1;
    expect_progress(s);
    return 0;
}

/* ------------------------------------------------------------ the end */

/* A signal ends the sort here: threads would be waited for at the end of the parallel region, and one may be
 * stuck in writing to a pipe that nobody reads. */
static void leave_by_signal(struct bam_sort *s)
{
    if (!latch_signalled())
        return;
    progress_end(&s->progress, false);
    sort_files_abandon(&s->out);
    sort_report_close(&s->report);
    latch_reraise();
}

/* All files at once. */
static void commit(struct bam_sort *s)
{
    stats_phase(s->stats, PHASE_FINISH);
    enum stage before = stats_enter(s->stats, STAGE_WRITE);
    sort_files_commit(&s->out);
    stats_leave(s->stats, before, 0);
}

/* What the sort took. */
static void tell(struct bam_sort *s)
{
    uint64_t records = s->arenas.filled ? s->arenas.filled->n_records : 0;
    stats_stop(s->stats);
    if (!s->stats)
        return;
    progress_end(&s->progress, !latch_tripped(&s->latch));
    if (!latch_tripped(&s->latch))
        sort_report_write(&s->report, s->stats, records, &s->latch);
}

/* Each file of htslib's may start one more in the sort. */
static int threads_to_be_had(const struct bam_sort *s)
{
    return sort_limits_threads(s->opts, sort_inputs_converted(&s->in) + (s->opts->out.format.format != bam));
}

/* Behind the parallel region: tasks that came too late still look at their slots. */
static void close_all(struct bam_sort *s)
{
    sort_files_close(&s->out);
    sort_rule_free(s->rule);
    minhash_free(s->minhash);
    sort_inputs_close(&s->in);
    merge_ring_close(s->merge);
    spill_policy_close(&s->spill);
    sort_tasks_close(&s->sorts);
    arenas_close(&s->arenas);
    block_reader_close(&s->reader);
    sort_report_close(&s->report);
    stats_free(s->stats);
}

/* What the main thread does while the others run tasks. */
static void in_team(void *sort)
{
    latch_hide_signals(false);
    if (read_and_sort(sort) == 0)
        merge_and_write(sort);
    leave_by_signal(sort);
}

int bam_sort(const struct sort_opts *opts)
{
    struct bam_sort s = {.opts = opts};
    machine_share_heaps();
    signal(SIGXFSZ, SIG_IGN);                    /* a limit on file sizes (ulimit -f) is an error like a full disk */
    if (open_all(&s) == 0) {
        latch_hide_signals(true);
        task_team(threads_to_be_had(&s), in_team, &s);
        if (!latch_tripped(&s.latch))
            commit(&s);
    }
    tell(&s);
    close_all(&s);
    latch_reraise();
    if (!latch_tripped(&s.latch))
        return EXIT_SUCCESS;
    message_error("%s.", s.latch.message);
    return EXIT_FAILURE;
}
