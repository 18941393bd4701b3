/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <htslib/hts_log.h>
#include "bam/bam_record.h"
#include "base/engine.h"
#include "base/latch.h"
#include "base/message.h"
#include "base/task_ring.h"
#include "bgzf_omp.h"
#include "engine/engine_memory.h"
#include "stats/counted.h"
#include "stats/stats_opts.h"

/* -------------------------------------------------------------------- open */

/* The memory of the counters, which have a part for each chunk, and of the tree that joins the parts. */
static size_t memory_of_counts(const void *counted, const struct memory_rings *rings)
{
    const struct counted *c = counted;
    const struct engine_opts *o = &c->opts->common;
    return counts_memory(o->out.counters, o->out.n_counters, c->in.each->header.sam, o->n_threads,
                         rings->chunks.n_chunks, rings->chunks.chunk_size)
         + join_tree_memory(rings->chunks.n_chunks);
}

static int check_memory(struct counted *c)
{
    const struct engine_opts *o = &c->opts->common;
    struct memory_plan plan;
    struct output_use use = {.more = memory_of_counts, .arg = c};
    return engine_memory_plan(&plan, &c->rings, o, &c->in, use, c->d->engine.latch);
}

/* Adds the region to those that are read. Prints a warning if the name is unknown, as samtools does. */
static int add_region(struct counted *c, const char *text, sam_hdr_t *sam, struct ref_regions *list)
{
    int ref = -1, level = hts_verbose;
    hts_pos_t begin, end;
    hts_verbose = HTS_LOG_OFF;
    const char *after = sam_parse_region(sam, text, &ref, &begin, &end, 0);
    hts_verbose = level;
    if (!after || ref < 0) {
        message_warning("Region '%s' specifies an unknown reference name. Continue anyway", text);
        return 0;
    }
    struct region region = {ref, begin, end};
    return ref_regions_add(list, &region) < 0 ? latch_fail(c->d->engine.latch, "out of memory for regions") : 0;
}

static int choose_regions(struct counted *c)
{
    const struct stats_opts *opts = c->opts;
    struct input *in = c->in.each;
    struct ref_regions list = {.n = 0};
    char *const *indexes = opts->common.in.indexes;
    c->d->engine.latch->by_index = true;
    int status = 0;
    for (int i = 0; i < opts->n_regions && status == 0; i++)
        status = add_region(c, opts->regions[i], in->header.sam, &list);
    if (status == 0 && list.n == 0)
        status = latch_fail(c->d->engine.latch, "%s: none of the regions is on a reference that it has", in->name);
    ref_regions_unite(&list);
    if (status == 0)
        status = input_choose(in, &list, indexes[0]);
    free(list.each);
    c->in.overhead += ref_regions_memory(&in->regions);
    return status;
}

int counted_open(struct counted *c)
{
    const struct engine_opts *o = &c->opts->common;
    c->rings = engine_memory_rings(o, &o->in, MEMORY_AT_ONCE, false);
    c->rings.n_slices = c->rings.sink_slots = 0;
    struct inputs_options how = engine_memory_inputs(o, &o->in, &c->rings, &c->d->engine);
    how.keeps_broken = true;
    how.far = true;
    how.waits = true;
    how.by_region = c->opts->n_regions > 0;
    return inputs_open(&c->in, &how) < 0 || (how.by_region && choose_regions(c) < 0) ? -1 : check_memory(c);
}

/* ------------------------------------------------------------------- count */

static void look(void *counted, int thread, uint32_t chunk, const uint8_t *record, uint32_t size)
{
    struct counted *c = counted;
    counts_add(c->counts, thread, chunk, record, size);
}

static void seen(void *counted, uint32_t chunk)
{
    join_tree_add(&((struct counted *)counted)->tree, chunk);
}

static int looked(void *counted, uint32_t chunk, const struct byte_buffer *records)
{
    struct counted *c = counted;
    (void)chunk;
    c->n_looked++;
    if (c->looks.look)                           /* the wait is short: the thread that joins never sleeps */
        return join_tree_wait(&c->tree, c->n_looked, task_no_help, NULL, c->d->engine.latch);
    for (size_t at = 0, size; at < records->n; at += size) {
        size = bam_record_size((const struct bam_record *)(records->p + at));
        counts_add_joined(c->counts, task_thread(), records->p + at, (uint32_t)size);
    }
    return counts_check(c->counts);
}

int counted_begin(struct counted *c)
{
    const struct engine_opts *o = &c->opts->common;
    struct input *in = c->in.each;
    struct counts_options how = {
        .counters = o->out.counters,
        .n = o->out.n_counters,
        .path = in->name,
        .n_slots = c->rings.chunks.n_chunks,
        .engine = &c->d->engine,
    };
    bool in_sequence = counts_in_sequence(how.counters, how.n);
    c->taken.counts_only = true;
    c->looks = (struct look_request){in_sequence ? NULL : look, in_sequence ? NULL : seen, looked, c};
    in->looks = &c->looks;
    if (!(c->counts = counts_open(&how, in->header.sam, in->by_region ? &in->regions : NULL)))
        return -1;
    if (join_tree_open(&c->tree, c->counts, how.n_slots, c->d->engine.clocks) < 0)
        return latch_fail(c->d->engine.latch, "%s: out of memory", in->name);
    if (input_begin(in) < 0)
        return -1;
    c->chunks = passed_records_chunks(in->passed);
    input_use_batches(in, &c->tasks);
    return 0;
}

static bool submit(void *counted)
{
    task_batches_submit(&((struct counted *)counted)->tasks);
    return false;
}

int counted_next(struct counted *c)
{
    const struct record_stream *from = &c->in.each->stream;
    progress_tick(&c->d->progress);
    enum chunk_state state = record_stream_await(from, submit, c, &c->d->engine);
    if (state != CHUNK_MADE)
        return state == CHUNK_NONE ? 0 : -1;
    if (from->take(from->producer, &c->spare) < 0)
        return -1;
    c->d->progress.taken = c->taken.n += c->spare.n;
    return 1;
}

int counted_end(const struct counted *c)
{
    return record_stream_end(&c->in.each->stream, c->taken, "on the way to the counters", c->in.each->name,
                             c->d->engine.latch);
}

void counted_close(struct counted *c)
{
    inputs_close(&c->in);
    record_slice_free(&c->spare);
    join_tree_close(&c->tree);
    counts_close(c->counts);
}
