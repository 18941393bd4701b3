/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include "bam/bam_record.h"
#include "base/engine.h"
#include "base/latch.h"
#include "cli/checked.h"
#include "engine/driver.h"
#include "engine/engine_memory.h"
#include "engine/engine_opts.h"
#include "order/sort_key.h"
#include "read/record_slice.h"
#include "write/samtools_checksum.h"
#include "write/written.h"

static const char NO_MEMORY[] = "out of memory for --checksum";

/* ------------------------------------------------------------------- tasks */

static void add_to_samtools(void *checked, uint32_t slot)
{
    struct checked *c = checked;
    const struct record_slice *s = &c->slices[slot];
    for (size_t i = 0; c->samtools && i < s->n; i++)
        if (samtools_checksum_add(c->samtools, task_thread(), bam_key_record(s->records.p, s->keys[i]),
                                  bam_key_record_size(s->records.p, s->keys[i])) < 0) {
            latch_fail(c->d->engine.latch, NO_MEMORY);
            return;
        }
}

/* -------------------------------------------------------------------- open */

/* Requests chunks of records with keys of the order, as a merge does. */
static int open_input(struct checked *c)
{
    const struct engine_opts *o = c->opts;
    if (o->order.by == SORT_MINHASH)
        return latch_fail(c->d->engine.latch, "-M cannot be checked: the sort changes the reads it ranks");
    struct memory_rings rings = engine_memory_rings(o, &o->in, MEMORY_AT_ONCE, false);
    struct inputs_options how = engine_memory_inputs(o, &o->in, &rings, &c->d->engine);
    how.far = true;                              /* positions beyond 2^31-1 in SAM are read */
    how.waits = true;
    if (inputs_open(&c->in, &how) < 0)
        return -1;
    if (!(c->rule = sort_rule_new(&o->order, c->in.each->header.sam)))
        return latch_fail(c->d->engine.latch, "out of memory");
    if (o->order.by == SORT_COORDINATE && c->in.n_converted)
        sort_rule_expect_far(c->rule);
    c->request.rule = c->rule;
    c->in.each->merge = &c->request;
    return 0;
}

static int open_ring(struct checked *c)
{
    int n_threads = c->opts->n_threads;
    struct task_ring_options ring = {.n_slots = (uint32_t)n_threads + 2, .run = add_to_samtools, .arg = c};
    c->slices = calloc(ring.n_slots, sizeof *c->slices);
    if (!c->slices || task_ring_open(&c->ring, &ring) < 0)
        return latch_fail(c->d->engine.latch, "out of memory");
    if (c->opts->out.checksum_samtools && !(c->samtools = samtools_checksum_new(n_threads)))
        return latch_fail(c->d->engine.latch, NO_MEMORY);
    return 0;
}

int checked_open(struct checked *c)
{
    return open_input(c) < 0 ? -1 : open_ring(c);
}

/* ------------------------------------------------------------------- order */

static const char *name_in(const struct record_slice *s, size_t number)
{
    return bam_record_name(bam_record_at(bam_key_record(s->records.p, s->keys[number])));
}

/* Reports that the record belongs before the one preceding it. */
static int report_offence(struct checked *c, const struct record_slice *s, size_t number, const char *name_before)
{
    uint64_t n = s->number + number;
    return latch_fail(c->d->engine.latch, "%s: record %" PRIu64 " (%s) belongs before record %" PRIu64 " (%s)",
                      engine_opts_input(c->opts), n, name_in(s, number), n - 1, name_before);
}

/* Checks that the records are in order, and follow those of the slice before. */
static int check_order(struct checked *c, const struct record_slice *s, const struct record_slice *before)
{
    if (c->taken.n > 0 && !record_slice_follows(before, before->n - 1, s, 0, c->rule))
        return report_offence(c, s, 0, name_in(before, before->n - 1));
    return s->out_of_order < s->n ? report_offence(c, s, s->out_of_order, name_in(s, s->out_of_order - 1)) : 0;
}

/* Takes the next slice. The slice before it is still valid, because its slot was not used again. */
static int take_slice(struct checked *c)
{
    struct task_ring *ring = &c->ring;
    const struct record_stream *from = &c->in.each->stream;
    if (task_ring_full(ring)) {
        task_ring_wait(ring, task_ring_oldest(ring), TASK_DONE, NULL, c->d->engine.clocks);
        task_ring_take(ring);
    }
    struct record_slice *s = &c->slices[task_ring_next(ring)];
    const struct record_slice *before = &c->slices[(task_ring_next(ring) + ring->opt.n_slots - 1) % ring->opt.n_slots];
    if (from->take(from->producer, s) < 0)
        return -1;
    if (s->n == 0)
        return 1;
    if (check_order(c, s, before) < 0)
        return -1;
    tally_add(&c->taken, (struct tally){.n = s->n, .checksum = s->checksum});
    c->d->progress.taken = c->taken.n;
    task_ring_hand_out(ring);
    return 1;
}

int checked_begin(struct checked *c)
{
    return input_begin(c->in.each);
}

static bool help_ring(void *checked)
{
    return task_ring_help(&((struct checked *)checked)->ring);
}

int checked_next(struct checked *c)
{
    progress_tick(&c->d->progress);
    enum chunk_state state = record_stream_await(&c->in.each->stream, help_ring, c, &c->d->engine);
    return state == CHUNK_MADE ? take_slice(c) : state == CHUNK_NONE ? 0 : -1;
}

int checked_end(struct checked *c)
{
    if (record_stream_end(&c->in.each->stream, c->taken, "on the way into --check", engine_opts_input(c->opts),
                          c->d->engine.latch) < 0)
        return -1;
    task_ring_take_all(&c->ring, c->d->engine.clocks);
    return 0;
}

/* --------------------------------------------------------- print and close */

void checked_print(struct checked *c)
{
    struct latch *latch = c->d->engine.latch;
    struct out_file *out = &c->d->out.checksum;
    const char *path = c->opts->out.checksum;
    if (!path || out_file_open(out, path, latch) < 0)
        return;
    if (c->samtools)
        written_samtools(out, c->samtools, c->opts->in.paths[0], latch);
    else
        written_checksum(out, c->taken, latch);
}

void checked_close(struct checked *c)
{
    inputs_close(&c->in);
    task_ring_close(&c->ring, !latch_tripped(c->d->engine.latch));
    for (uint32_t i = 0; c->slices && i < c->ring.opt.n_slots; i++)
        record_slice_free(&c->slices[i]);
    free(c->slices);
    sort_rule_free(c->rule);
    samtools_checksum_free(c->samtools);
}
