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
 * There is one `omp parallel`, below. The master finds blocks and deals them out,
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
#include "order/minhash.h"
#include "sort/minhash_run.h"
#include "report/progress.h"
#include "write/record_sink.h"
#include "write/sort_files.h"
#include "read/sort_input.h"
#include "plan/sort_limits.h"
#include "cli/sort_opts.h"
#include "report/sort_report.h"
#include "base/stats.h"

static const uint64_t HEADER_LEAST = (uint64_t)64 << 20;     /* with little memory too: half a million references */

struct bam_sort {
    const struct sort_opts *opts;
    struct latch latch;
    struct stats *stats;
    struct sort_report report;
    struct progress progress;
    struct sort_inputs in;
    struct sort_files out;
    uint64_t budget;             /* bytes of memory; once for all, since what is left becomes less */
    struct memory_plan plan;
    struct arena_pair memory;    /* of the records */
    struct arena_fill fill;      /* reading, into that */
    sam_hdr_t *sam;              /* header of the first input, then of the output */
    struct sort_rule *rule;
    struct minhash *minhash;     /* of -M; else NULL */
    _Atomic bool far;            /* a record has positions beyond 32 bits; its reader sets it */
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
    bool keys_do = s->minhash ? minhash_decides(s->minhash) : sort_key_decides(s->rule);
    if (keys_do && sort_inputs_converted(&s->in) && far_pos_fits(&s->opts->out.format)) {
        sort_key_decides_until(s->rule, &s->far);
        keys_do = false;
    }
    arena_pair_set_order(&s->memory, sam_hdr_nref(s->sam), keys_do ? NULL : s->rule, s->minhash);
    return 0;
}

static void plan_memory(struct bam_sort *s)
{
    const struct sort_opts *opts = s->opts;
    struct memory_use use = {s->budget, opts->n_threads, opts->out.level, 1 + opts->n_more,
                             sort_inputs_header_size(&s->in), sort_inputs_memory(&s->in),
                             stats_memory(opts->n_threads, sort_report_detail(opts))};
    use.htslib += sort_files_memory(opts, s->sam, s->budget) + (s->minhash ? minhash_memory(s->minhash) : 0);
    s->plan = memory_plan_make(&use, arena_fill_slot_memory());
}

static int open_inputs(struct bam_sort *s)
{
    struct sort_inputs_options how = {s->opts, s->plan.source_slots, s->plan.piece_size, s->budget,
                                      s->budget > HEADER_LEAST ? s->budget : HEADER_LEAST,
                                      far_pos_fits(&s->opts->out.format) ? &s->far : NULL, &s->latch, s->stats};
    if (sort_inputs_open(&s->in, &how) < 0)
        return -1;
    s->sam = s->in.each->header.sam;
    return 0;
}

static int reserve_memory(struct bam_sort *s)
{
    const struct sort_opts *opts = s->opts;
    struct arena_fill_options fill = {&s->memory, &s->in, s->plan.source_slots, opts->size_hint,
                                      &s->progress, &s->latch, s->stats};
    if (arena_fill_open(&s->fill, &fill) < 0)
        return -1;
    struct arena_pair_options how = {s->plan, opts->temp_prefixes, opts->n_temp_prefixes, arena_fill_least(&s->fill),
                                     arena_fill_expected, &s->fill, opts->n_threads, &s->latch, s->stats};
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
    s->budget = sort_limits_memory(s->opts);
    plan_memory(s);
    if (sort_files_open(&s->out, s->opts, s->plan.sink_slots, &s->latch, s->stats) < 0
        || sort_report_open(&s->report, s->opts, &s->latch) < 0 || open_inputs(s) < 0
        || prepare_minhash(s) < 0)
        return -1;
    plan_memory(s);                              /* again: now the headers are known, and the index of -I */
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

int bam_sort(const struct sort_opts *opts)
{
    struct bam_sort s = {.opts = opts};
    signal(SIGXFSZ, SIG_IGN);                    /* a limit on file sizes (ulimit -f) is an error like a full disk */
    if (open_all(&s) == 0) {
        latch_hide_signals(true);
        #pragma omp parallel num_threads(threads_to_be_had(&s))
        #pragma omp master
        {
            latch_hide_signals(false);
            run_phases(&s);
            leave_by_signal(&s);
        }
        if (!latch_tripped(&s.latch))
            commit(&s);
    }
    tell(&s);
    close_all(&s);
    latch_reraise();
    if (!latch_tripped(&s.latch))
        return EXIT_SUCCESS;
    fprintf(stderr, "samtools sort: %s.\n", s.latch.message);
    return EXIT_FAILURE;
}
