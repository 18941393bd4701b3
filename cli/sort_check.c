/* SPDX-License-Identifier: MIT */
/* The driver of `sort --check`, which reads a file as a merge would, and checks that it is in order.
 *
 *   in.bam --> blocks --> chunks ----> slices -----------> checksum
 *              inflate    records      compared with the   if --checksum
 *              tasks      and keys,    slice before        asks for it,
 *                         compared                         when complete
 *                         by tasks
 *
 * The main thread hands the work out and takes the slices in order: take_all(), take_slice(), check_order(). Tasks
 * compute the checksum of samtools. Only the chunks that are read ahead and these slices are in memory. */
#include <inttypes.h>
#include <stdlib.h>
#include "bam/bam_record.h"
#include "write/samtools_checksum.h"
#include "write/written.h"
#include "base/engine.h"
#include "base/latch.h"
#include "base/machine.h"
#include "base/out_file.h"
#include "base/clocks.h"
#include "cli/sort_check.h"
#include "read/input.h"
#include "read/passed_records.h"
#include "order/sort_key.h"
#include "engine/driver.h"
#include "engine/engine_memory.h"
#include "engine/engine_opts.h"
#include "base/task_ring.h"

static const char NO_MEMORY[] = "out of memory for --checksum";

struct sort_check {
    const struct engine_opts *opts;
    struct driver *d;
    struct inputs in;            /* one */
    struct merge_request request; /* requests records with keys, changed as htslib would write them */
    struct sort_rule *rule;
    struct record_stream stream; /* gives the records */
    struct task_ring ring;       /* slices whose samtools checksum is being computed; slot i holds slices[i] */
    struct record_slice *slices; /* the slice of each slot */
    struct tally taken;
    struct samtools_checksum *samtools;   /* checksum of the records; NULL: not requested */
    struct out_file out;         /* the file of --checksum */
};

/* ------------------------------------------------------------------- tasks */

static void add_to_samtools(void *check, uint32_t slot)
{
    struct sort_check *c = check;
    const struct record_slice *s = &c->slices[slot];
    for (size_t i = 0; c->samtools && i < s->n; i++)
        if (samtools_checksum_add(c->samtools, task_thread(), bam_key_record(s->records.p, s->keys[i]),
                                  bam_key_record_size(s->records.p, s->keys[i])) < 0) {
            latch_fail(c->d->engine.latch, NO_MEMORY);
            return;
        }
}

/* ------------------------------------------------------------- main thread */

static const char *name_in(const struct record_slice *s, size_t number)
{
    return bam_record_name(bam_record_at(bam_key_record(s->records.p, s->keys[number])));
}

/* Reports that the record belongs before the one preceding it. */
static int report_offence(struct sort_check *c, const struct record_slice *s, size_t number, const char *name_before)
{
    uint64_t n = s->number + number;
    return latch_fail(c->d->engine.latch, "%s: record %" PRIu64 " (%s) belongs before record %" PRIu64 " (%s)",
                      engine_opts_input(c->opts), n, name_in(s, number), n - 1, name_before);
}

/* Checks that the records are in order, and follow those of the slice before. */
static int check_order(struct sort_check *c, const struct record_slice *s, const struct record_slice *before)
{
    if (c->taken.n > 0 && !record_slice_follows(before, before->n - 1, s, 0, c->rule))
        return report_offence(c, s, 0, name_in(before, before->n - 1));
    return s->out_of_order < s->n ? report_offence(c, s, s->out_of_order, name_in(s, s->out_of_order - 1)) : 0;
}

/* Takes the next slice. The slice before it is still valid, because its slot was not used again. */
static int take_slice(struct sort_check *c)
{
    struct task_ring *ring = &c->ring;
    if (task_ring_full(ring)) {
        task_ring_wait(ring, task_ring_oldest(ring), TASK_DONE, NULL, c->d->engine.clocks);
        task_ring_take(ring);
    }
    struct record_slice *s = &c->slices[task_ring_next(ring)];
    const struct record_slice *before = &c->slices[(task_ring_next(ring) + ring->opt.n_slots - 1) % ring->opt.n_slots];
    if (c->stream.take(c->stream.producer, s) < 0)
        return -1;
    if (s->n == 0)
        return 0;
    if (check_order(c, s, before) < 0)
        return -1;
    tally_add(&c->taken, (struct tally){s->n, s->checksum});
    c->d->progress.taken = c->taken.n;
    task_ring_hand_out(ring);
    return 0;
}

static bool is_made(void *check)
{
    struct sort_check *c = check;
    return latch_tripped(c->d->engine.latch) || c->stream.advance(c->stream.producer) != CHUNK_AWAITED;
}

static bool help(void *check)
{
    struct sort_check *c = check;
    return c->stream.help(c->stream.producer) || task_ring_help(&c->ring);
}

static int take_all(struct sort_check *c)
{
    struct latch *latch = c->d->engine.latch;
    for (;;) {
        progress_tick(&c->d->progress);
        task_wait(is_made, help, c, c->d->engine.clocks);
        enum chunk_state state = latch_tripped(latch) ? CHUNK_FAILED : c->stream.advance(c->stream.producer);
        if (state == CHUNK_NONE)
            return record_stream_end(&c->stream, c->taken, "on the way into --check", engine_opts_input(c->opts),
                                     latch);
        if (state == CHUNK_FAILED || take_slice(c) < 0)
            return -1;
    }
}

/* -------------------------------------------------------- from beginning to end */

/* Requests chunks of records with keys of the order, as a merge does. Called when the header has been read. */
static int take_header(void *check, struct input *in)
{
    struct sort_check *c = check;
    const struct engine_opts *opts = c->opts;
    if (!(c->rule = sort_rule_new(&opts->order, in->header.sam)))
        return latch_fail(c->d->engine.latch, "out of memory");
    c->request.rule = c->rule;
    in->merge = &c->request;
    return 0;
}

static int open_ring(struct sort_check *c)
{
    const struct engine_opts *opts = c->opts;
    int n_threads = opts->n_threads;
    struct task_ring_options ring = {.n_slots = (uint32_t)n_threads + 2, .run = add_to_samtools, .arg = c};
    c->slices = calloc(ring.n_slots, sizeof *c->slices);
    if (!c->slices || task_ring_open(&c->ring, &ring) < 0)
        return latch_fail(c->d->engine.latch, "out of memory");
    if (opts->out.checksum_samtools && !(c->samtools = samtools_checksum_new(n_threads)))
        return latch_fail(c->d->engine.latch, NO_MEMORY);
    return 0;
}

static int open_input(struct sort_check *c)
{
    const struct engine_opts *opts = c->opts;
    if (opts->order.by == SORT_MINHASH)
        return latch_fail(c->d->engine.latch, "-M cannot be checked: the sort changes the reads it ranks");
    struct memory_rings rings = engine_memory_rings(opts, &opts->in, MEMORY_AT_ONCE, false);
    struct inputs_options how = engine_memory_inputs(opts, &opts->in, &rings, &c->d->engine);
    how.far = true;                          /* positions beyond 2^31-1 in SAM are read */
    how.join = take_header;
    how.arg = c;
    if (inputs_open(&c->in, &how) < 0)
        return -1;
    if (opts->order.by == SORT_COORDINATE && c->in.n_converted)
        sort_rule_expect_far(c->rule);
    return 0;
}

static void print_checksum(struct sort_check *c)
{
    struct latch *latch = c->d->engine.latch;
    const char *path = c->opts->out.checksum;
    if (path && out_file_open(&c->out, path, latch) == 0
        && (c->samtools ? written_samtools(&c->out, c->samtools, c->opts->in.paths[0], latch)
                        : written_checksum(&c->out, c->taken, latch)) == 0
        && out_file_finish(&c->out, latch) == 0)
        out_file_commit(&c->out, latch);
}

static void work(void *check)
{
    struct sort_check *c = check;
    struct input *in = c->in.each;
    if (input_begin(in) < 0)
        return;
    c->stream = in->stream;
    clocks_phase(c->d->engine.clocks, PHASE_READ);
    if (take_all(c) == 0)
        task_ring_take_all(&c->ring, c->d->engine.clocks);
}

static void close_all(struct sort_check *c)
{
    out_file_abandon(&c->out);
    inputs_close(&c->in);
    task_ring_close(&c->ring, !latch_tripped(c->d->engine.latch));
    for (uint32_t i = 0; c->slices && i < c->ring.opt.n_slots; i++)
        record_slice_free(&c->slices[i]);
    free(c->slices);
    sort_rule_free(c->rule);
    samtools_checksum_free(c->samtools);
}

int sort_check(const struct engine_opts *opts)
{
    struct latch latch = {0};
    struct driver d = {.engine.latch = &latch, .out = WRITTEN_CLOSED};
    struct sort_check c = {.opts = opts, .d = &d, .out.fd = -1};
    machine_share_heaps();
    if (command_report_open(&d.report, &opts->report, &latch) == 0 && driver_begin(&d, opts) == 0
        && open_input(&c) == 0 && open_ring(&c) == 0)
        driver_run(&d, opts, &c.in, work, &c);
    if (!latch_tripped(&latch))
        print_checksum(&c);
    close_all(&c);
    return driver_end(&d, c.taken.n);
}
