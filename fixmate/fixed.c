/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "bam_arena.h"
#include "base/engine.h"
#include "fixmate/fixed.h"
#include "fixmate/fixmate_opts.h"
#include "engine/engine_memory.h"
#include "write/record_sink.h"
#include "write/written.h"

/* -------------------------------------------------------------------- open */

static const struct engine_opts *common(const struct fixed *f)
{
    return &f->opts->common;
}

/* Refuses an input that is sorted by coordinate, where names are in any order. Checks only the header, as samtools
 * does. */
static int check_order(struct fixed *f)
{
    const struct bam_header *header = &f->in.each->header;
    int sorted = header->is_broken ? 0 : bam_header_says(header->sam, "coordinate");
    return sorted < 0 ? latch_fail(f->d->engine.latch, "out of memory for the header")
         : sorted > 0 ? latch_fail(f->d->engine.latch, "%s: it is sorted by coordinate, and must be grouped or "
                                   "sorted by name. Nothing was written; use samtools collate or sort -n first",
                                   engine_opts_input(common(f))) : 0;
}

static int open_input(struct fixed *f)
{
    const struct engine_opts *o = common(f);
    struct inputs_options how = engine_memory_inputs(o, &o->in, &f->rings, &f->d->engine);
    how.keeps_broken = true;
    if (inputs_open(&f->in, &how) < 0 || check_order(f) < 0)
        return -1;
    f->request.rules = f->opts->rules;
    f->request.rules.lengths = f->lengths = bam_header_lengths(f->in.each->header.sam);
    f->request.orphans = parted_mates_put;
    f->request.orphans_arg = &f->parted;
    return f->lengths && parted_mates_open(&f->parted, engine_opts_input(o)) == 0
         ? 0 : latch_fail(f->d->engine.latch, "out of memory");
}

/* Plans the memory. If the command line sets no limit, more than the default is allowed. */
static int check_memory(struct fixed *f)
{
    struct memory_plan plan;
    struct output_use output = written_use(&common(f)->out, f->in.each->header.sam, &f->rings);
    output.overhead += parted_mates_memory();
    return engine_memory_plan(&plan, &f->rings, common(f), &f->in, output, f->d->engine.latch);
}

static int open_records(struct fixed *f)
{
    struct fixed_records_options how = {
        .in = input_chunks(f->in.each),
        .request = &f->request,
        .is_last = true,
        .lengths = written_takes_reference(&common(f)->out.format) ? f->lengths : NULL,
    };
    struct sliced_input_options slices = {.n_slices = f->rings.n_slices, .engine = &f->d->engine};
    if (!(f->records = fixed_records_open(&how, &f->in.each->header)))
        return -1;
    return sliced_input_begin_of(&f->slices, f->in.each, fixed_records_stream(f->records), &slices);
}

int fixed_open(struct fixed *f, const struct fixmate_opts *opts)
{
    const struct engine_opts *o = &opts->common;
    f->opts = opts;
    f->rings = engine_memory_rings(o, &o->in, MEMORY_AT_ONCE, true);
    return driver_open(f->d, o, &f->rings) < 0 || open_input(f) < 0 || check_memory(f) < 0
        || (f->in.each->header.is_broken && written_keep_header(&f->d->out, &f->in.each->header, true) < 0)
        || written_prepare(&f->d->out, f->in.each->header.sam, inputs_held(&f->in, f->in.each->header.sam, false),
                           NULL) < 0 ? -1 : open_records(f);
}

/* ------------------------------------------------------------------ records */

static enum chunk_state advance(void *fixed)
{
    struct fixed *f = fixed;
    struct sliced_input *slices = &f->slices;
    if (f->is_out)                               /* it is in the sink by now */
        sliced_input_leave(slices, slices->left + 1, record_sink_mark(f->d->out.sink));
    f->is_out = false;
    sliced_input_free(slices, record_sink_passed_of, f->d->out.sink);
    if (sliced_input_advance(slices) < 0 || latch_tripped(f->d->engine.latch))
        return CHUNK_FAILED;
    return slices->left < slices->made ? CHUNK_MADE : slices->ended ? CHUNK_NONE : CHUNK_AWAITED;
}

static bool help(void *fixed)
{
    struct fixed *f = fixed;
    record_sink_make_task(f->d->out.sink);
    return record_sink_help(f->d->out.sink) || sliced_input_help(&f->slices);
}

static int list_records(struct fixed *f, const struct record_slice *s)
{
    if (s->n > f->max) {
        struct record_ref *records = realloc(f->list.records, s->n * sizeof *records);
        if (!records)
            return latch_fail(f->d->engine.latch, "%s: out of memory", engine_opts_input(common(f)));
        f->list.records = records;
        f->max = s->n;
    }
    for (size_t i = 0; i < s->n; i++)
        f->list.records[i] = (struct record_ref){bam_key_record(s->records.p, s->keys[i]),
                                                 (uint32_t)bam_key_record_size(s->records.p, s->keys[i]), 0, 0};
    f->list.n = s->n;
    return 0;
}

static int take(void *fixed, struct record_list *list)
{
    struct fixed *f = fixed;
    progress_tick(&f->d->progress);
    if (list_records(f, sliced_input_at(&f->slices, f->slices.left)) < 0)
        return -1;
    f->is_out = true;
    *list = f->list;
    return 0;
}

static int end(void *fixed, struct tally *given)
{
    const struct sliced_input *slices = &((struct fixed *)fixed)->slices;
    *given = slices->taken;
    return sliced_input_end(slices, "on the way to the output");
}

struct list_stream fixed_stream(struct fixed *f)
{
    return (struct list_stream){advance, take, help, end, f};
}

void fixed_finish(struct fixed *f)
{
    driver_finish(f->d);
    sliced_input_close(&f->slices);
    inputs_close(&f->in);
    fixed_records_close(f->records);
    free(f->list.records);
    free(f->lengths);
    parted_mates_free(&f->parted);
}
