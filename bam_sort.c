/* SPDX-License-Identifier: MIT */
/* The driver: how a BAM file gets sorted.
 *
 *   in.bam --> bgzf_source --> bam_arena --> sort_run --> merge_ring --> bgzf_sink --> out.bam
 *   (or -)     read-ahead,     records and   one task     ranges of      two rings,     (out_file:
 *     |        one inflate     their keys    per sublist, sublists and   one deflate    renamed when
 *     |        task per block  in one region while        runs, a task   task per       whole)
 *     |                        (two of them) reading      for each       block
 *   byte_source: whatever           |                      |     ^
 *   the input is, a stream          +-> spill: arenas ---> |     |
 *   of BAM bytes (SAM:                  that are full,     | run_reader: slices
 *   sam_reader; CRAM:                   as packed runs     | come back ahead of
 *   hts_reader)                                            | the merge
 *                                                record_sink (SAM, CRAM: hts_writer)
 *
 * There is one `omp parallel`, in task_team(). The master finds blocks and deals them out,
 * takes them back in order, plans the merge and fills output blocks with lists of
 * records; all else is tasks (and a thread that reads a pipe). */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include "read/arena_fill.h"
#include "sort/arena_pair.h"
#include "bam_sort.h"
#include "bam/far_pos.h"
#include "base/latch.h"
#include "base/machine.h"
#include "base/message.h"
#include "order/minhash.h"
#include "sort/minhash_run.h"
#include "base/progress.h"
#include "write/record_sink.h"
#include "write/sort_files.h"
#include "read/sort_input.h"
#include "plan/sort_limits.h"
#include "cli/sort_opts.h"
#include "report/sort_report.h"
#include "base/stats.h"
#include "base/task_ring.h"

static const uint64_t HEADER_LEAST = (uint64_t)64 << 20;     /* with little memory too: half a million references */

struct bam_sort {
    const struct sort_opts *opts;
    struct latch latch;
    struct stats *stats;
    struct sort_report report;
    struct progress progress;
    struct sort_inputs in;
    struct sort_files out;
    struct memory_rings rings;   /* memory, before anything is opened ... */
    struct memory_plan plan;     /* ... and once the headers are known */
    struct arena_pair memory;    /* of the records */
    struct arena_fill fill;      /* reading, into that */
    sam_hdr_t *sam;              /* header of the first input, then of the output */
    struct sort_rule *rule;
    struct minhash *minhash;     /* of -M; else NULL */
};

/* ---------------------------------------------------------- before reading */

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
    bool far = sort_inputs_converted(&s->in) && far_pos_fits(&s->opts->out.format);
    if (far)
        sort_rule_expect_far(s->rule);
    bool keys_do = s->minhash ? minhash_decides(s->minhash) && !far : sort_key_decides(s->rule);
    arena_pair_set_order(&s->memory, sam_hdr_nref(s->sam), keys_do ? NULL : s->rule, s->minhash);
    return 0;
}

static struct memory_rings plan_rings(const struct sort_opts *opts)
{
    struct memory_job job = {
        .budget = sort_limits_memory(opts),
        .n_threads = opts->n_threads,
        .level = opts->out.level,
        .n_inputs = 1 + opts->n_more,
        .found = arena_fill_slot_memory(),
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
        .far = far_pos_fits(&s->opts->out.format),
        .latch = &s->latch,
        .stats = s->stats,
    };
    if (sort_inputs_open(&s->in, &how) < 0)
        return -1;
    s->sam = s->in.each->header.sam;
    return 0;
}

static int reserve_memory(struct bam_sort *s)
{
    const struct sort_opts *opts = s->opts;
    struct arena_fill_options fill = {
        .memory = &s->memory,
        .inputs = &s->in,
        .n_slots = s->rings.source_slots,
        .size_hint = opts->size_hint,
        .progress = &s->progress,
        .latch = &s->latch,
        .stats = s->stats,
    };
    if (arena_fill_open(&s->fill, &fill) < 0)
        return -1;
    struct arena_pair_options how = {
        .plan = s->plan,
        .temp_prefixes = opts->temp_prefixes,
        .n_temp_prefixes = opts->n_temp_prefixes,
        .at_least = arena_fill_least(&s->fill),
        .expected = arena_fill_expected,
        .arg = &s->fill,
        .n_threads = opts->n_threads,
        .latch = &s->latch,
        .stats = s->stats,
    };
    return arena_pair_open(&s->memory, &how);
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

/* --------------------------------------------------------------- the flow */

/* Phase 1: fill the memory; inflate, find and sort as the blocks come. */
static int read_input(struct bam_sort *s)
{
    stats_phase(s->stats, PHASE_READ);
    return arena_fill_read(&s->fill, s->rule);
}

/* Phase 2: merge the runs and the sorted sublists into the sink. */
static int write_output(struct bam_sort *s)
{
    stats_phase(s->stats, PHASE_WRITE);
    if (s->minhash && !minhash_decides(s->minhash))
        record_sink_set_finish(s->out.sink, minhash_run_finish);
    return sort_files_header(&s->out, s->sam, arena_pair_unplaced(&s->memory)) < 0
        || arena_pair_merge(&s->memory, s->out.sink) < 0 ? -1 : 0;
}

/* Phase 3: what was read is what was written. */
static int finish_output(struct bam_sort *s)
{
    return sort_files_finish(&s->out, s->memory.arena->n_records, s->memory.arena->checksum + s->memory.turned);
}

static void run_phases(struct bam_sort *s)
{
    if (read_input(s) == 0 && write_output(s) == 0)
        finish_output(s);
}

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
    uint64_t records = s->memory.arena ? s->memory.arena->n_records : 0;
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
    arena_pair_close(&s->memory);
    arena_fill_close(&s->fill);
    sort_report_close(&s->report);
    stats_free(s->stats);
}

/* What the main thread does while the others run tasks. */
static void in_team(void *sort)
{
    latch_hide_signals(false);
    run_phases(sort);
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
