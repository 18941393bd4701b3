/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "base/engine.h"
#include "base/latch.h"
#include "base/clocks.h"
#include "base/task_ring.h"
#include "markdup/dup_counts.h"
#include "markdup/dup_store.h"
#include "markdup/marked_flow.h"
#include "markdup/marked_rounds.h"
#include "markdup/marked_store.h"
#include "write/record_sink.h"

enum {
    SLICES_MORE = 2,             /* slices that are keyed, finished or stored at once, beyond the number of threads */
    ROUND_LEAST = 4,             /* slices of a round, if there is a reason to wait */
};

struct marked_flow {
    struct marked_flow_options opt;
    struct dup_counts **counts;  /* opt.n_counts of them: one for each thread, written by that thread only, and one for
                                  * the losses */
    struct task_ring keys, finish, leave;
    struct marked_slice **keying, **finishing, **leaving;    /* by slot */
    struct marked_queue keyed;   /* waiting for a round; main thread, as all below */
    struct marked_place at;      /* the end of the keyed records */
    struct marked_rounds *rounds;
    struct dup_store losses;  /* holds losses that do not fit into memory; is_open: written while no round is running */
    struct marked_queue here;    /* waiting slices that stay in memory; they belong to the rounds */
    struct marked_queue out;     /* the sink may still refer to them */
    struct marked_slice *given;  /* its records are being written to the sink */
    struct marked_queue spare;   /* not in use */
    struct marked_entries **spare_entries;
    size_t n_spare_entries, max_spare_entries;
    size_t memory;               /* bytes of the slices in use ... */
    size_t leaves;               /* ... and the part of them that is being stored */
    bool ended;                  /* the source has no more records */
    struct marked_totals totals;
};

static int out_of_memory(const struct marked_flow *f)
{
    return latch_fail(f->opt.engine->latch, "%s: out of memory", f->opt.path);
}

static int push(struct marked_flow *f, struct marked_queue *q, struct marked_slice *slice)
{
    if (marked_queue_push(q, slice) == 0)
        return 0;
    marked_slice_free(slice);
    return out_of_memory(f);
}

/* ------------------------------------------------------------------- slices */

static struct marked_slice *new_slice(struct marked_flow *f)
{
    struct marked_queue *spare = &f->spare;
    struct marked_slice *s = !marked_queue_is_empty(spare) ? spare->list[--spare->n].slice : calloc(1, sizeof *s);
    if (!s)
        out_of_memory(f);
    return s;
}

static void drop_slice(struct marked_flow *f, struct marked_slice *s)
{
    marked_slice_clear(s);
    if (f->spare.n - f->spare.first < f->keys.opt.n_slots)
        push(f, &f->spare, s);
    else
        marked_slice_free(s);
}

static int take_entries(struct marked_flow *f, struct marked_slice *s)
{
    s->entries = f->n_spare_entries ? f->spare_entries[--f->n_spare_entries] : calloc(1, sizeof *s->entries);
    return s->entries ? 0 : out_of_memory(f);
}

static void drop_entries(struct marked_flow *f, struct marked_slice *s)
{
    if (f->n_spare_entries < f->max_spare_entries)
        f->spare_entries[f->n_spare_entries++] = s->entries;
    else
        marked_entries_free(s->entries);
    s->entries = NULL;
}

/* -------------------------------------------------------------------- tasks */

static void key_slice(void *flow, uint32_t slot)
{
    struct marked_flow *f = flow;
    struct marked_slice *s = f->keying[slot];
    if (latch_tripped(f->opt.engine->latch))
        return;
    enum stage before = clocks_enter(f->opt.engine->clocks, STAGE_FIND);
    if (marked_slice_key(s, f->opt.rule.read, marked_rounds_shards(f->rounds), f->counts[task_thread()]) < 0)
        out_of_memory(f);
    clocks_leave(f->opt.engine->clocks, before, 0);
}

static int report_record(const struct marked_flow *f, const struct marked_slice *s, size_t i, const char *why)
{
    const uint8_t *r = bam_key_record(s->records.records.p, s->records.keys[i]);
    return latch_fail(f->opt.engine->latch, "%s: record %llu (%s): %s", f->opt.path,
                      (unsigned long long)(s->first + i + 1), bam_record_name(bam_record_at(r)), why);
}

static void leave_slice(void *flow, uint32_t slot)
{
    struct marked_flow *f = flow;
    struct marked_slice *s = f->leaving[slot];
    if (latch_tripped(f->opt.engine->latch) || marked_store_put(f->opt.store, &s->records, &s->run) < 0)
        return;
    record_list_free(&s->list);                  /* its size is that of the records the slice had before */
    s->list = (struct record_list){.n = 0};
    s->max_list = 0;
}

static void finish_slice(void *flow, uint32_t slot)
{
    struct marked_flow *f = flow;
    struct marked_slice *s = f->finishing[slot];
    if (latch_tripped(f->opt.engine->latch)
        || (s->where == MARKED_AWAY && marked_store_get(f->opt.store, &s->run, &s->records) < 0))
        return;
    s->where = MARKED_HERE;
    enum stage before = clocks_enter(f->opt.engine->clocks, STAGE_MERGE);
    int status = marked_slice_finish(s, &f->opt.rule, f->counts[task_thread()]);
    clocks_leave(f->opt.engine->clocks, before, 0);
    if (status < 0 && s->changed)
        report_record(f, s, s->faulty, "another one was made of it. Memory may be faulty, or this is our bug: please "
                      "report it");
    else if (status < 0 && s->unmarked)
        report_record(f, s, s->faulty, dup_mark_fault_text(s->unmarked));
    else if (status < 0)
        out_of_memory(f);
}

/* -------------------------------------------------------- main thread: keys */

/* Returns whether work is running that will make room without more records. */
static bool is_busy(const struct marked_flow *f)
{
    return !task_ring_empty(&f->keys) || !marked_queue_is_empty(&f->keyed) || marked_rounds_on(f->rounds)
        || !task_ring_empty(&f->finish) || !task_ring_empty(&f->leave);
}

static int take_slice(struct marked_flow *f)
{
    struct marked_slice *s = new_slice(f);
    if (!s)
        return -1;
    if (f->opt.source->take(f->opt.source->producer, &s->records) < 0 || s->records.n == 0 || take_entries(f, s) < 0) {
        drop_slice(f, s);
        return latch_tripped(f->opt.engine->latch) ? -1 : 0;
    }
    s->first = f->totals.taken.n;
    s->from = (struct marked_place){.is_set = false};
    tally_add(&f->totals.taken, (struct tally){.n = s->records.n, .checksum = s->records.checksum});
    s->memory = marked_slice_memory(s);
    f->memory += s->memory;
    f->keying[task_ring_next(&f->keys)] = s;
    task_ring_hand_out(&f->keys);
    return 0;
}

/* Bytes of slices and losses. Losses count at most half the room, so that records can be read. */
static size_t memory_of(const struct marked_flow *f)
{
    return f->memory + marked_rounds_memory(f->rounds, f->opt.room / 2);
}

/* Takes the records that the source has. A failure is recorded in the latch. */
static void read_on(struct marked_flow *f)
{
    uint32_t enough = f->finish.opt.n_slots;     /* as many more are being finished, so all threads have work */
    if (marked_rounds_final(f->rounds, enough))
        return;
    while (!f->ended && !task_ring_full(&f->keys)
           && (memory_of(f) < f->opt.room || !(is_busy(f) || marked_rounds_final(f->rounds, 0)))) {
        enum chunk_state state = f->opt.source->advance(f->opt.source->producer);
        f->ended = state == CHUNK_NONE;
        if (state != CHUNK_MADE || take_slice(f) < 0)
            return;
    }
}

/* Uses the words of samtools, which tests of pipelines look for. */
static int report_mate_cigar(const struct marked_flow *f, const struct marked_slice *s, size_t i)
{
    const uint8_t *r = bam_key_record(s->records.records.p, s->records.keys[i]);
    const char *why = s->fault == BAM_NO_MC ? "no MC tag. Please run samtools fixmate on file first."
                    : "MC tag wrong type. Please use the MC tag provided by samtools fixmate.";
    return latch_fail(f->opt.engine->latch, "error, %s %s: record %llu (%s): markdup is unable to assign pair hash "
                      "key. Nothing was written", why, f->opt.path, (unsigned long long)(s->first + i + 1),
                      bam_record_name(bam_record_at(r)));
}

/* Reports the first record with a fault or out of order. */
static int report_disorder(const struct marked_flow *f, const struct marked_slice *s, size_t i)
{
    bool is_fault = s->fault && i == s->out_of_order;
    if (is_fault && (s->fault == BAM_NO_MC || s->fault == BAM_BAD_MC))
        return report_mate_cigar(f, s, i);
    return report_record(f, s, i, is_fault ? bam_fault_text(s->fault)
                         : "it is before the preceding record, so the file is not in coordinate sorted order; "
                            "use samtools sort first");
}

static void warn_of_missed(struct marked_flow *f, const struct marked_slice *s)
{
    f->opt.chains.warnings->examined += s->n_examined;
    f->opt.chains.warnings->untagged += s->n_untagged;
    size_t n = s->n_missed < MARKED_MISSED ? s->n_missed : MARKED_MISSED;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *r = bam_key_record(s->records.records.p, s->records.keys[s->missed[i]]);
        dup_warnings_take(f->opt.chains.warnings, DUP_WARNING_BARCODE, bam_record_name(bam_record_at(r)));
    }
    if (s->n_missed > n)
        dup_warnings_count(f->opt.chains.warnings, DUP_WARNING_BARCODE, s->n_missed - n);
}

static void take_keyed(struct marked_flow *f)
{
    while (!task_ring_empty(&f->keys) && task_ring_state(&f->keys, task_ring_oldest(&f->keys)) == TASK_DONE) {
        struct marked_slice *s = f->keying[task_ring_oldest(&f->keys)];
        task_ring_take(&f->keys);
        if (latch_tripped(f->opt.engine->latch))
            marked_slice_free(s);
        else if (push(f, &f->keyed, s) < 0)
            return;
        else if (s->out_of_order == 0 || !marked_slice_join(s, &f->at))
            report_disorder(f, s, 0);
        else if (s->out_of_order < s->records.n)
            report_disorder(f, s, s->out_of_order);
        else
            warn_of_missed(f, s);
    }
}

/* ------------------------------------------------------ main thread: rounds */

/* Called when the shards are done with the slice. */
static void entered(void *flow, struct marked_slice *s)
{
    struct marked_flow *f = flow;
    drop_entries(f, s);
    if (marked_queue_push(&f->here, s) < 0)
        out_of_memory(f);
}

static void begin_round(struct marked_flow *f)
{
    size_t n = f->keyed.n - f->keyed.first, least = (size_t)f->opt.engine->n_threads / 2;
    least = least > ROUND_LEAST ? least : ROUND_LEAST;
    if (marked_rounds_on(f->rounds) || n == 0 || (n < least && !task_ring_empty(&f->keys)))
        return;
    if (!f->losses.is_open && marked_rounds_memory(f->rounds, SIZE_MAX) > f->losses.most) {
        if (marked_store_prepare(f->opt.store) < 0)
            return;
        f->losses.is_open = true;
    }
    marked_rounds_begin(f->rounds, &f->keyed);
}

static void go_on(struct marked_flow *f)
{
    if (f->ended && task_ring_empty(&f->keys) && marked_queue_is_empty(&f->keyed))
        marked_rounds_end(f->rounds);
    marked_rounds_go_on(f->rounds);
}

/* ---------------------------------------------------- main thread: what leaves */

static void take_left(struct marked_flow *f)
{
    while (!task_ring_empty(&f->leave) && task_ring_state(&f->leave, task_ring_oldest(&f->leave)) == TASK_DONE) {
        struct marked_slice *s = f->leaving[task_ring_oldest(&f->leave)];
        task_ring_take(&f->leave);
        s->where = MARKED_AWAY;
        f->memory -= s->memory;
        f->leaves -= s->memory;
        s->memory = 0;
    }
}

/* Stores the youngest slices when three quarters of the room are in use, so that reading need not stop for it. */
static void leave_room(struct marked_flow *f)
{
    take_left(f);
    if (marked_rounds_final(f->rounds, 0))       /* there will be room without it */
        return;
    while (memory_of(f) - f->leaves > f->opt.room / 4 * 3 && !task_ring_full(&f->leave)) {
        if (marked_queue_is_empty(&f->here) || marked_store_prepare(f->opt.store) < 0)
            return;
        struct marked_slice *s = f->here.list[--f->here.n].slice;
        s->where = MARKED_LEAVES;
        f->leaves += s->memory;
        f->leaving[task_ring_next(&f->leave)] = s;
        task_ring_hand_out(&f->leave);
    }
}

/* ----------------------------------------------------- main thread: the end */

static void finish_on(struct marked_flow *f)
{
    struct marked_slice *s;
    while (!task_ring_full(&f->finish) && (s = marked_rounds_final(f->rounds, 0)) && s->where != MARKED_LEAVES) {
        marked_rounds_pop(f->rounds);
        f->here.first += s->where == MARKED_HERE;        /* it is the oldest in memory */
        f->finishing[task_ring_next(&f->finish)] = s;
        task_ring_hand_out(&f->finish);
    }
}

static void free_passed(struct marked_flow *f)
{
    while (!marked_queue_is_empty(&f->out) && record_sink_passed(f->opt.sink, f->out.list[f->out.first].slice->mark)) {
        struct marked_slice *s = marked_queue_pop(&f->out);
        f->memory -= s->memory;
        drop_slice(f, s);
    }
}

static int leave_given(struct marked_flow *f)
{
    struct marked_slice *s = f->given;
    if (!s)
        return 0;
    f->given = NULL;
    s->mark = record_sink_mark(f->opt.sink);
    return push(f, &f->out, s);
}

enum chunk_state marked_flow_advance(struct marked_flow *f)
{
    if (leave_given(f) < 0)
        return CHUNK_FAILED;
    free_passed(f);
    take_keyed(f);
    read_on(f);
    go_on(f);
    begin_round(f);
    finish_on(f);
    leave_room(f);
    if (latch_tripped(f->opt.engine->latch))
        return CHUNK_FAILED;
    if (!task_ring_empty(&f->finish))
        return task_ring_state(&f->finish, task_ring_oldest(&f->finish)) == TASK_DONE ? CHUNK_MADE : CHUNK_AWAITED;
    return marked_rounds_done(f->rounds) ? CHUNK_NONE : CHUNK_AWAITED;
}

bool marked_flow_help(struct marked_flow *f)
{
    record_sink_make_task(f->opt.sink);
    task_ring_make_task(&f->keys);
    task_ring_make_task(&f->finish);
    task_ring_make_task(&f->leave);
    return task_ring_help(&f->finish) || marked_rounds_help(f->rounds)
        || record_sink_help(f->opt.sink) || task_ring_help(&f->keys)
        || task_ring_help(&f->leave) || (!f->ended && f->opt.source->help(f->opt.source->producer));
}

void marked_flow_take(struct marked_flow *f, struct record_list *list)
{
    f->given = f->finishing[task_ring_oldest(&f->finish)];
    f->memory -= f->given->memory;
    f->given->memory = marked_slice_memory(f->given);
    f->memory += f->given->memory;
    task_ring_take(&f->finish);
    tally_add(&f->totals.given, (struct tally){.n = f->given->list.n, .checksum = f->given->checksum});
    f->totals.dropped += f->given->n_dropped;
    *list = f->given->list;
}

const struct marked_totals *marked_flow_totals(const struct marked_flow *f)
{
    return &f->totals;
}

void marked_flow_counts(const struct marked_flow *f, struct dup_counts *sum)
{
    for (int i = 0; i <= f->opt.engine->n_threads; i++)
        for (size_t k = 0; k < f->opt.n_counts; k++)
            dup_counts_add(&sum[k], &f->counts[i][k]);
    for (size_t k = 0; k < f->opt.n_counts; k++)
        sum[k].written += sum[k].read;           /* so far, the records left out were subtracted from it */
}

/* ---------------------------------------------------------- open and close */

static int open_ring(struct task_ring *ring, uint32_t n_slots, task_run_fn *run, struct marked_flow *f)
{
    struct task_ring_options how = {.n_slots = n_slots, .run = run, .arg = f};
    return task_ring_open(ring, &how);
}

static int open_counts(struct marked_flow *f)
{
    size_t n = (size_t)f->opt.engine->n_threads + 1;
    f->counts = calloc(n, sizeof *f->counts);
    for (size_t i = 0; f->counts && i < n; i++)
        if (!(f->counts[i] = calloc(f->opt.n_counts, sizeof **f->counts)))
            return -1;
    return f->counts ? 0 : -1;
}

/* A quarter of the room is for losses. One step reports at most half as many bytes. */
static int open_rounds(struct marked_flow *f)
{
    enum { LOSSES = 4, STEP = 8 };
    const struct marked_flow_options *o = &f->opt;
    marked_store_lend(o->store, &f->losses);
    f->losses.most = o->room / LOSSES;
    struct marked_rounds_options how = {
        .chains = o->chains,
        .follows = o->follows,
        .keeps = o->rule.others,
        .step = o->room / STEP,
        .window = o->window,
        .counts = f->counts,
        .entered = entered,
        .arg = f,
        .path = o->path,
        .engine = o->engine,
    };
    how.chains.store = &f->losses;
    how.chains.totals = f->counts[o->engine->n_threads];
    return (f->rounds = marked_rounds_open(&how)) ? 0 : -1;
}

/* Number of slices that are keyed, finished or stored at a time, each. */
static uint32_t count_tasks(int n_threads)
{
    return SLICES_MORE + (uint32_t)n_threads;
}

size_t marked_flow_room(int n_threads, size_t records_size)
{
    enum { STEPS = 3 };          /* keyed, in a round, finished */
    return STEPS * count_tasks(n_threads) * marked_slice_memory_of(records_size);
}

size_t marked_flow_memory(int n_threads, size_t records_size)
{
    return marked_flow_room(n_threads, records_size)
         + marked_store_memory(n_threads, marked_slice_memory_of(records_size));
}

struct marked_flow *marked_flow_open(const struct marked_flow_options *options)
{
    struct marked_flow *f = calloc(1, sizeof *f);
    uint32_t n = count_tasks(options->engine->n_threads);
    if (f) {
        f->opt = *options;
        f->max_spare_entries = n;
        f->keying = calloc(n, sizeof *f->keying);
        f->finishing = calloc(n, sizeof *f->finishing);
        f->leaving = calloc(n, sizeof *f->leaving);
        f->spare_entries = calloc(n, sizeof *f->spare_entries);
    }
    if (f && f->keying && f->finishing && f->leaving && f->spare_entries && open_ring(&f->keys, n, key_slice, f) == 0
        && open_ring(&f->finish, n, finish_slice, f) == 0 && open_ring(&f->leave, n, leave_slice, f) == 0
        && open_counts(f) == 0 && open_rounds(f) == 0)
        return f;
    latch_fail(options->engine->latch, "%s: out of memory", options->path);
    marked_flow_close(f);
    return NULL;
}

/* Frees slices that a task had when the command failed. */
static void free_slots(struct task_ring *ring, struct marked_slice **slices)
{
    for (uint64_t i = ring->tail; slices && i < ring->head; i++)
        marked_slice_free(slices[task_ring_slot(ring, i)]);
    free(slices);
}

void marked_flow_close(struct marked_flow *f)
{
    if (!f)
        return;
    bool well = !latch_tripped(f->opt.engine->latch);
    free_slots(&f->keys, f->keying);
    free_slots(&f->finish, f->finishing);
    task_ring_close(&f->keys, well);
    task_ring_close(&f->finish, well);
    task_ring_close(&f->leave, well);
    free(f->leaving);
    free(f->here.list);
    marked_rounds_close(f->rounds);
    for (int i = 0; f->counts && i <= f->opt.engine->n_threads; i++)
        free(f->counts[i]);
    free(f->counts);
    marked_slice_free(f->given);
    marked_queue_free(&f->keyed);
    marked_queue_free(&f->out);
    marked_queue_free(&f->spare);
    for (size_t i = 0; i < f->n_spare_entries; i++)
        marked_entries_free(f->spare_entries[i]);
    free(f->spare_entries);
    free(f);
}
