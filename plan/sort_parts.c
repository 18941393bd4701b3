/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "bam/far_pos.h"
#include "plan/sort_opts.h"
#include "base/stats.h"
#include "merge/merge_ring.h"
#include "order/minhash.h"
#include "order/sort_key.h"
#include "plan/sort_memory.h"
#include "plan/sort_parts.h"
#include "read/input_part.h"
#include "write/record_sink.h"

static bool is_prepared(const struct sort_parts *s)
{
    return s->part && s->part->prepared;
}

static int build_index(struct sort_parts *s)
{
    bool silent = s->part && s->part->silent;
    const char *cause = minhash_build_index(s->minhash, !silent);
    if (!cause)
        return 0;
    if (!silent)
        return latch_fail(&s->latch, "the index of minimisers (-M, -I) cannot be made");
    return latch_fail(&s->latch, "the index of minimisers (-M, -I) cannot be made: %s: %s", s->opts->order.index_fasta,
                      cause);
}

static int prepare_minhash(struct sort_parts *s)
{
    if (s->opts->order.by != SORT_MINHASH)
        return 0;
    if (sam_hdr_nref(s->sam) >= MINHASH_REF_MAX)
        return latch_fail(&s->latch, "%s: too many references for -M", sort_opts_input(s->opts));
    if (!(s->minhash = minhash_new(&s->opts->order)))
        return latch_fail(&s->latch, "out of memory");
    return is_prepared(s) ? 0 : build_index(s);
}

/* Whether a read's rank is needed once it has its key: the merge compares ranks, or another sort makes keys of them. */
static bool keep_ranks(const struct sort_parts *s)
{
    return s->minhash && (s->part || !minhash_decides(s->minhash));
}

/* CRAM must know of records that begin behind the end of their reference (write/cram_settings.h). */
static int prepare_lengths(struct sort_parts *s)
{
    int n = sam_hdr_nref(s->sam);
    if (s->opts->out.format.format != cram)
        return 0;
    if (!(s->lengths = malloc((size_t)(n + 1) * sizeof *s->lengths)))
        return latch_fail(&s->latch, "out of memory");
    for (int i = 0; i < n; i++)
        s->lengths[i] = (int64_t)sam_hdr_tid2len(s->sam, i);
    arenas_set_lengths(&s->arenas, s->lengths);
    return 0;
}

static int prepare_order(struct sort_parts *s)
{
    s->rule = sort_rule_new(&s->opts->order, s->sam);
    if (!s->rule)
        return latch_fail(&s->latch, "out of memory");
    bool far = s->in.n_converted && far_pos_fits(&s->opts->out.format);
    if (far)
        sort_rule_expect_far(s->rule);
    bool keys_do = s->minhash ? minhash_decides(s->minhash) && !far : sort_key_decides(s->rule);
    arenas_set_order(&s->arenas, sam_hdr_nref(s->sam), keys_do ? NULL : s->rule);
    if (is_prepared(s))
        arenas_set_mended(&s->arenas);
    if (keep_ranks(s))
        record_sink_set_finish(s->out.sink, sort_tasks_finish_record);
    return 0;
}

/* The second part of the plan: the headers are read, and the index of -I is made. */
static int plan_memory(struct sort_parts *s)
{
    size_t output = sort_files_memory(&s->out, s->sam, &s->rings.job)
                  + (s->minhash ? minhash_memory(s->minhash) : 0) + (s->part ? s->part->beside : 0);
    return sort_memory_plan(&s->plan, &s->rings, s->opts, &s->in, output, &s->latch);
}

static int open_inputs(struct sort_parts *s)
{
    struct sort_inputs_options how = sort_memory_inputs(s->opts, &s->rings, &s->latch, s->stats);
    how.part = s->part;
    if (sort_inputs_open(&s->in, &how) < 0)
        return -1;
    s->sam = s->in.each->header.sam;
    return 0;
}

static int open_spill(struct sort_parts *s)
{
    struct spill_policy_options how = {
        .store = {
            .prefixes = s->opts->temp_prefixes,
            .n_prefixes = s->opts->n_temp_prefixes,
            .latch = &s->latch,
            .stats = s->stats,
        },
        .spill = {
            .merge_memory = s->plan.merge_memory,
            .n_threads = s->opts->n_threads,
            .latch = &s->latch,
            .stats = s->stats,
        },
        .at_least = block_reader_least(&s->reader),
        .arena_size = s->arenas.filled->size,
        .slice_size = s->plan.slice_size,
        .help = sort_tasks_help,
        .arg = &s->sorts,
    };
    return spill_policy_open(&s->spill, &how);
}

/* The arenas come after what has a fixed size: they take what a limit on addresses leaves. */
static int reserve_memory(struct sort_parts *s)
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
        .are_ranked = is_prepared(s),
        .keep_ranks = keep_ranks(s),
        .arena_is_sorted = spill_policy_arena_is_sorted,
        .arg = &s->spill,
        .latch = &s->latch,
        .stats = s->stats,
    };
    return block_reader_open(&s->reader, &reader) < 0 || sort_tasks_open(&s->sorts, &sorts) < 0
        || arenas_open(&s->arenas, s->plan.arena_size, &s->latch) < 0 || open_spill(s) < 0 ? -1 : 0;
}

int sort_parts_open(struct sort_parts *s, const struct sort_opts *opts)
{
    return sort_parts_open_part(s, opts, NULL);
}

int sort_parts_open_part(struct sort_parts *s, const struct sort_opts *opts, const struct input_part *part)
{
    s->opts = opts;
    s->part = part;
    if (!(s->stats = stats_new(s->opts->n_threads, sort_report_detail(&s->opts->report))))
        return latch_fail(&s->latch, "out of memory");
    stats_phase(s->stats, PHASE_OPEN);
    progress_start(&s->progress, s->opts->progress, s->stats);
    s->rings = sort_memory_rings(s->opts, part != NULL);
    /* The report first: it counts the cycles of later threads. */
    if (sort_report_open(&s->report, &opts->report, sort_opts_subject(opts), &s->latch) < 0
        || sort_files_open(&s->out, &opts->out, &s->rings, sort_opts_input(opts), &s->latch, s->stats) < 0
        || open_inputs(s) < 0 || prepare_minhash(s) < 0)
        return -1;
    if (plan_memory(s) < 0 || reserve_memory(s) < 0 || prepare_order(s) < 0 || prepare_lengths(s) < 0
        || sort_files_prepare(&s->out, s->sam, s->minhash ? NULL : s->rule) < 0)
        return -1;
    s->progress.file_bytes = (double)s->in.length;
    s->progress.data_bytes = (double)s->opts->size_hint;
    record_sink_set_progress(s->out.sink, &s->progress);
    return 0;
}

/* ----------------------------------------------------------------- closing */

enum { N_PARTS = 5 };            /* that are slow to close */

/* No part needs another one while it is closed, so tasks close them side by side. The slowest come first. */
static void close_part(struct sort_parts *s, uint32_t number)
{
    switch (number) {
    case 0:
        spill_policy_close_store(&s->spill);
        break;
    case 1:
        sort_inputs_close(&s->in);
        break;
    case 2:
        spill_policy_close(&s->spill);
        break;
    case 3:
        block_reader_close(&s->reader);
        break;
    case 4:
        merge_ring_close(s->merge);
    }
}

/* Closes a part, or gives back a share of the arenas. */
static void close_slot(void *parts, uint32_t slot)
{
    struct sort_parts *s = parts;
    enum stage before = stats_enter(s->stats, STAGE_FREE);
    if (slot < N_PARTS)
        close_part(s, slot);
    else
        arenas_give_back(&s->arenas, slot - N_PARTS, s->closing.opt.n_slots - N_PARTS);
    stats_leave(s->stats, before, 0);
}

/* Gives all files their names at once, if all went well, and removes what has none. */
static void finish_files(struct sort_parts *s)
{
    enum stage before = stats_enter(s->stats, STAGE_WRITE);
    if (!latch_tripped(&s->latch))
        sort_files_commit(&s->out);
    stats_enter(s->stats, STAGE_FREE);
    sort_files_close(&s->out);
    stats_leave(s->stats, before, 0);
}

/* The OpenMP runtime ends the program when it finds no memory for a task. So the main thread makes all tasks before
 * an output has its name. */
static void close_in_team(void *parts)
{
    struct sort_parts *s = parts;
    task_ring_hand_out_all(&s->closing);
    finish_files(s);
    task_ring_take_all(&s->closing, s->stats);
}

static void close_alone(struct sort_parts *s)
{
    finish_files(s);
    for (uint32_t i = 0; i < N_PARTS; i++)
        close_part(s, i);
}

void sort_parts_finish(struct sort_parts *s, int n_threads)
{
    static const uint64_t LEAST = (uint64_t)16 << 20;        /* bytes in the arenas: less is soon given back */
    struct task_ring_options ring = {.n_slots = N_PARTS + (uint32_t)n_threads, .run = close_slot, .arg = s};
    stats_phase(s->stats, PHASE_FINISH);
    bool much = !latch_tripped(&s->latch) && (s->spill.spilling || arenas_taken(&s->arenas) >= LEAST);
    if (much && task_ring_open(&s->closing, &ring) == 0)
        task_team(n_threads, close_in_team, s);
    else
        close_alone(s);
    task_ring_close(&s->closing, true);
    sort_tasks_close(&s->sorts);
    arenas_close(&s->arenas);
    free(s->lengths);
    sort_rule_free(s->rule);
    minhash_free(s->minhash);
}
