/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <htslib/hts_log.h>
#include "bam/long_pos.h"
#include "base/engine.h"
#include "base/latch.h"
#include "engine/driver.h"
#include "engine/engine_opts.h"
#include "base/clocks.h"
#include "sort/merge_ring.h"
#include "order/minhash.h"
#include "order/sort_key.h"
#include "engine/engine_memory.h"
#include "sort/sorted.h"
#include "write/record_sink.h"
#include "write/written.h"

/* Only one node reports on stderr. The others have their verbosity lowered (mpi/rank_sort.c). */
static int build_index(struct sorted *s)
{
    bool silent = s->turn == SORT_FIRST && hts_verbose <= HTS_LOG_ERROR;
    const char *cause = minhash_build_index(s->minhash, !silent);
    if (!cause)
        return 0;
    if (!silent)
        return latch_fail(s->engine->latch, "the index of minimisers (-M, -I) cannot be made");
    return latch_fail(s->engine->latch, "the index of minimisers (-M, -I) cannot be made: %s: %s",
                      s->opts->order.index_fasta, cause);
}

static int prepare_minhash(struct sorted *s)
{
    if (s->opts->order.by != SORT_MINHASH)
        return 0;
    if (sam_hdr_nref(s->sam) >= MINHASH_REF_MAX)
        return latch_fail(s->engine->latch, "%s: too many references for -M", engine_opts_input(s->opts));
    if (!(s->minhash = minhash_new(&s->opts->order)))
        return latch_fail(s->engine->latch, "out of memory");
    return s->turn == SORT_SECOND ? 0 : build_index(s);
}

/* Returns whether reads keep their ranks after their keys are made, because the merge compares ranks or another sort
 * makes keys from them. */
static bool keep_ranks(const struct sorted *s)
{
    return s->minhash && (s->turn != SORT_ONLY || !minhash_decides(s->minhash));
}

/* Gets the lengths of references: the CRAM encoder must know about records that begin after the end of their reference
 * (hts/cram_settings.h). */
static int prepare_lengths(struct sorted *s)
{
    if (s->opts->out.format.format != cram)
        return 0;
    if (!(s->lengths = bam_header_lengths(s->sam)))
        return latch_fail(s->engine->latch, "out of memory");
    return 0;
}

static int prepare_order(struct sorted *s)
{
    s->rule = sort_rule_new(&s->opts->order, s->sam);
    if (!s->rule)
        return latch_fail(s->engine->latch, "out of memory");
    bool far = s->in.n_converted && long_pos_fits(&s->opts->out.format);
    if (far)
        sort_rule_expect_far(s->rule);
    bool keys_do = s->minhash ? minhash_decides(s->minhash) && !far : sort_key_decides(s->rule);
    arenas_expect(&s->arenas, sam_hdr_nref(s->sam), s->lengths, keys_do ? NULL : s->rule, s->turn == SORT_SECOND);
    if (s->sink && keep_ranks(s))
        record_sink_how(s->sink)->finish = sort_tasks_finish_record;
    return 0;
}

/* Returns the memory of the output and of the order, for the plan. */
static struct output_use output_use_of(const struct sorted *s)
{
    struct output_use output = s->output;
    if (s->to) {
        output = written_use(&s->opts->out, s->sam, &s->rings);
        output.overhead += s->output.overhead;
    }
    output.overhead += s->minhash ? minhash_memory(s->minhash) : 0;
    return output;
}

/* The second part of the plan, made when the headers are read and the index of -I is made. */
static int plan_memory(struct sorted *s)
{
    return engine_memory_plan(&s->plan, &s->rings, s->opts, &s->in, output_use_of(s), s->engine->latch);
}

static int open_inputs(struct sorted *s, const struct sorted_options *options)
{
    struct inputs_options how = engine_memory_inputs(s->opts, options->in, &s->rings, s->engine);
    if (options->opened) {
        s->in = *options->opened;
        *options->opened = (struct inputs){.each = NULL};
    } else if (inputs_open(&s->in, &how) < 0) {
        return -1;
    }
    s->sam = s->in.each->header.sam;
    return 0;
}

static int open_spill(struct sorted *s)
{
    struct spill_policy_options how = {
        .store = engine_opts_store(s->opts, s->engine),
        .merge_memory = s->plan.merge_memory,
        .at_least = block_reader_least(&s->reader),
        .arena_size = s->arenas.filled->size,
        .slice_size = s->plan.slice_size,
        .help = sort_tasks_help,
        .arg = &s->sorts,
    };
    return spill_policy_open(&s->spill, &how);
}

/* Reserves the arenas after everything that has a fixed size, because they take what a limit on addresses leaves. */
static int reserve_memory(struct sorted *s, uint64_t size_hint)
{
    struct block_reader_options reader = {
        .inputs = &s->in,
        .n_slots = s->rings.source_slots,
        .n_lent = s->rings.chunks.n_lent,
        .size_hint = size_hint,
        .engine = s->engine,
    };
    struct sort_tasks_options sorts = {
        .arenas = &s->arenas,
        .minhash = s->minhash,
        .are_ranked = s->turn == SORT_SECOND,
        .keep_ranks = keep_ranks(s),
        .arena_is_sorted = spill_policy_arena_is_sorted,
        .arg = &s->spill,
        .engine = s->engine,
    };
    return block_reader_open(&s->reader, &reader) < 0 || sort_tasks_open(&s->sorts, &sorts) < 0
        || arenas_open(&s->arenas, s->plan.arena_size, s->engine->latch) < 0 || open_spill(s) < 0 ? -1 : 0;
}

static int prepare_output(struct sorted *s)
{
    bool sorts = s->opts->order.by != SORT_COLLATE;
    return written_prepare(s->to, s->sam, inputs_held(&s->in, s->sam, sorts), s->minhash ? NULL : s->rule);
}

int sorted_open(struct sorted *s, const struct sorted_options *how)
{
    s->opts = how->opts;
    s->turn = how->turn;
    s->to = how->to;
    s->sink = s->to ? s->to->sink : NULL;
    s->rings = *how->rings;
    s->output = how->output;
    s->engine = how->engine;
    s->progress = how->progress;
    if (!s->engine->clocks)
        return latch_fail(s->engine->latch, "out of memory");
    if (open_inputs(s, how) < 0 || prepare_minhash(s) < 0 || plan_memory(s) < 0
        || reserve_memory(s, how->size_hint) < 0 || prepare_lengths(s) < 0 || prepare_order(s) < 0
        || (s->to && prepare_output(s) < 0))
        return -1;
    return 0;
}

/* ------------------------------------------------------------------- merge */

void sorted_say_merge(const struct sorted *s, uint64_t n_runs, uint64_t n_sublists)
{
    bool is_told = s->opts->order.by != SORT_COLLATE && hts_verbose > HTS_LOG_ERROR;   /* the line of `samtools sort` */
    if (n_runs > 0 && is_told)
        fprintf(stderr, "[bam_sort_core] merging from %llu files and %llu in-memory blocks...\n",
                (unsigned long long)n_runs, (unsigned long long)n_sublists);
}

struct tally sorted_tally(const struct sorted *s)
{
    struct tally read = {.n = 0};
    if (!s->arenas.filled)
        return read;
    read = bam_arena_tally(s->arenas.filled);
    read.checksum += s->sorts.turned;
    return read;
}

/* Runs come back into the arena that is free by now, one slice at a time. */
int sorted_prepare_merge(struct sorted *s, struct merge_ring_options *how, bool again)
{
    struct bam_arena *spare = arenas_other(&s->arenas);
    *how = (struct merge_ring_options){
        .arenas = {spare, s->arenas.filled},
        .n_arenas = 2,
        .sink = s->sink,
        .n_ranges = s->rings.merge_ranges,
        .n_spare = s->rings.merge_spare,
        .n_records = s->rings.merge_records,
        .engine = s->engine,
    };
    return spill_policy_read_back(&s->spill, spare->base, spare->size, s->sink, again, &how->runs);
}

int sorted_begin_merge(struct sorted *s, const struct merge_ring_options *how)
{
    return (s->merge = merge_ring_open(how)) ? 0 : -1;
}

int sorted_merge(struct sorted *s)
{
    struct merge_ring_options how;
    if (sorted_prepare_merge(s, &how, false) < 0 || sorted_begin_merge(s, &how) < 0)
        return -1;
    sorted_say_merge(s, how.runs.n, s->arenas.filled->n_sublists);
    return 0;
}

int sorted_put_header(const struct sorted *s, struct written *to)
{
    return written_header(to, s->sam, &s->opts->order, arenas_unplaced(&s->arenas), arenas_beyond(&s->arenas));
}

/* A range holds the keys from one value to another, which a task merged from all sublists and runs. Its list only
 * points at records; the deflate task of each block copies them together. */
static enum chunk_state advance(void *sorted)
{
    return merge_ring_advance(((struct sorted *)sorted)->merge);
}

static int take(void *sorted, struct record_list *list)
{
    return merge_ring_take(((struct sorted *)sorted)->merge, list);
}

static bool help(void *sorted)
{
    return merge_ring_help(((struct sorted *)sorted)->merge);
}

static int end(void *sorted, struct tally *given)
{
    *given = sorted_tally(sorted);
    return 0;
}

struct list_stream sorted_stream(struct sorted *s)
{
    return (struct list_stream){advance, take, help, end, s};
}

/* ----------------------------------------------------------------- closing */

enum { N_CLOSED = 5 };           /* number of parts that are slow to close */

/* Closes one part. No part needs another one while it is closed, so tasks close them side by side. The slowest parts
 * come first. */
static void close_one(struct sorted *s, uint32_t number)
{
    switch (number) {
    case 0:
        spill_policy_close_store(&s->spill);
        break;
    case 1:
        inputs_close(&s->in);
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

/* Closes one part, or gives back a share of the arenas. */
static void close_slot(void *sorted, uint32_t slot)
{
    struct sorted *s = sorted;
    enum stage before = clocks_enter(s->engine->clocks, STAGE_FREE);
    if (slot < N_CLOSED)
        close_one(s, slot);
    else
        arenas_give_back(&s->arenas, slot - N_CLOSED, s->closing.opt.n_slots - N_CLOSED);
    clocks_leave(s->engine->clocks, before, 0);
}

static void finish_output(const struct sorted *s)
{
    if (s->driver)
        driver_finish(s->driver);
}

/* The OpenMP runtime ends the program when there is no memory for a task. So the main thread makes all tasks before an
 * output gets its name. */
static void close_in_team(void *sorted)
{
    struct sorted *s = sorted;
    task_ring_hand_out_all(&s->closing);
    finish_output(s);
    task_ring_take_all(&s->closing, s->engine->clocks);
}

static void close_alone(struct sorted *s)
{
    finish_output(s);
    for (uint32_t i = 0; i < N_CLOSED; i++)
        close_one(s, i);
}

void sorted_finish(struct sorted *s, int n_threads, struct driver *d)
{
    static const uint64_t LEAST = (uint64_t)16 << 20;        /* bytes in the arenas: fewer bytes are quickly given
                                                              * back */
    struct task_ring_options ring = {.n_slots = N_CLOSED + (uint32_t)n_threads, .run = close_slot, .arg = s};
    clocks_phase(s->engine->clocks, PHASE_FINISH);
    s->driver = d;
    bool much = !latch_tripped(s->engine->latch) && (s->spill.spilling || arenas_taken(&s->arenas) >= LEAST);
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
