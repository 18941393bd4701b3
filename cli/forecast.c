/* SPDX-License-Identifier: MIT */
#include <math.h>
#include "bam/bam_header.h"
#include "base/engine.h"
#include "base/latch.h"
#include "order/bam_key.h"
#include "cli/forecast.h"
#include "markdup/markdup_opts.h"
#include "markdup/marked.h"
#include "markdup/marked_slice.h"
#include "engine/memory_plan.h"
#include "merge/merge_inputs.h"
#include "merge/merge_opts.h"
#include "merge/merged.h"
#include "sormadup/sormadup.h"
#include "sormadup/sormadup_memory.h"
#include "sormadup/sormadup_opts.h"
#include "engine/engine_memory.h"
#include "read/input_format.h"
#include "read/input_sample.h"
#include "sort/spill_policy.h"
#include "write/written.h"

/* The filled part of an arena that is spilled: this happens when less than a sixteenth is free (is_worth_filling() in
 * sort/arena_room.c). */
static const double FILLED = 31.0 / 32;

/* Returns whether the path may be read: reading a pipe would take data from the sort, and a URL would take time. A path
 * that does not exist is reported as the sort reports it. */
static bool may_look(const char *path)
{
    return input_name_is_file(path) || !input_name_is_stream(path);
}

static bool all_files(const struct engine_opts *o)
{
    bool all = true;
    for (size_t i = 0; i < o->in.n; i++)
        all = all && may_look(o->in.paths[i]);
    return all;
}

/* ------------------------------------------------------------------- plans */

/* The data that the memory plan depends on, in addition to the size of memory. */
struct planned {
    const struct memory_job *job;
    const struct engine_opts *opts;
    struct inputs in;
    struct output_use output;
    struct sormadup_use use;     /* the parts of a sormadup that `output` counts */
};

/* Notes the data that the memory plan of the opened inputs depends on. output: memory of the files. */
static void plan_for(struct planned *p, const struct forecast *f, const struct engine_opts *opts,
                     const struct inputs *in, struct output_use output, const struct memory_rings *rings)
{
    *p = (struct planned){.job = &rings->job, .opts = opts, .in = *in, .output = output};
    if (f->of == FORECAST_MARKDUP)
        p->output = marked_use(output);
    if (f->of != FORECAST_SORMADUP)
        return;
    p->use = (struct sormadup_use){opts, *in, output, f->collates};
    p->output.more = sormadup_overhead;
    p->output.arg = &p->use;
    p->in.n_chunked = 1 + (f->collates ? 0 : in->n_chunked); /* the other sort parses them */
}

/* --------------------------------------------------------------- decisions */

/* Estimates the data that go to disk, with the sizes that the sort will choose. The first arena to be spilled is as
 * large as planned, those after it leave room for the packed data kept in memory, and the last one stays. */
static void forecast_runs(struct forecast *f, const struct memory_plan *plan)
{
    if (f->of == FORECAST_MARKDUP) {
        f->packed = f->temporary = (f->record_bytes - (double)f->fits) * f->ratios.packed;
        return;
    }
    struct spill_sizes sizes = spill_policy_sizes(plan->arena_size, plan->slice_size, f->record_bytes, false);
    double first = FILLED * (double)plan->arena_size, each = FILLED * (double)sizes.arena_size;
    double more = ceil(fmax(f->with_keys - first, 0) / each) - 1;
    more = more > 0 ? more : 0;
    f->runs = 1 + more;
    f->merged_at_once = sizes.fan_in;
    f->packed = (first + more * each) / f->with_keys * f->record_bytes * f->ratios.packed;
    f->temporary = fmax(f->packed - (double)sizes.store, 0);
    int sorts = f->collates ? 2 : 1;
    f->runs *= sorts;
    f->packed *= sorts;
    f->temporary *= sorts;
}

/* Estimates the memory of a markdup, whose slices hold records with their verdicts. They are spilled if all records
 * wait. */
static void forecast_waiting(struct forecast *f, const struct memory_plan *plan)
{
    size_t slice = plan->rings.chunks.records_size;
    f->fits = (uint64_t)((double)marked_room(plan) * (double)slice / (double)marked_slice_memory_of(slice));
    f->spills = f->keeps && f->record_bytes > (double)f->fits;
    if (f->sampled)
        f->memory = (uint64_t)fmin((double)plan->fixed + f->with_keys, (double)f->memory_most);
}

/* Adds the memory that a sormadup uses in addition to that of its sort. If it spills nothing, few records wait for
 * their marks, and the other sort has the records as well. */
static void forecast_overhead(struct forecast *f, const struct planned *p, const struct memory_rings *rings)
{
    size_t reserved = sormadup_overhead(&p->use, rings) - sormadup_memory_least(f->n_threads);
    if (f->sampled && !f->spills)
        f->memory += (f->collates ? (uint64_t)f->with_keys : 0) - (uint64_t)reserved;
    f->memory = f->memory < f->memory_most ? f->memory : f->memory_most;
}

/* sample: may be NULL or empty. */
static void forecast_memory(struct forecast *f, const struct memory_plan *plan, const struct input_sample *sample)
{
    enum { LARGE_TIMES = 3,                      /* while it is read, or written to the sink */
           FIXED_TAGS = 24 };                    /* bytes that fixmate -m adds to a record: MC, MQ and ms */
    bool marks = f->of == FORECAST_MARKDUP, fixes = f->of == FORECAST_SORMADUP, merges = f->of == FORECAST_MERGE;
    f->large = sample && !plan->rings.job.in_chunks && sample->largest > plan->arena_size ? sample->largest : 0;
    f->memory_of_large = LARGE_TIMES * f->large;
    uint64_t takes = memory_plan_takes(plan);
    f->memory_most = (marks && takes < plan->rings.job.all ? plan->rings.job.all : takes) + f->memory_of_large;
    f->memory = f->memory_most;
    f->fits = 2 * (uint64_t)plan->arena_size;
    f->sampled = sample && sample->n > 0;
    if (f->sampled) {
        f->record_bytes = sample->all_bytes;
        f->records = sample->all_records;
        f->with_keys = f->record_bytes + f->records * (double)(sizeof(struct bam_key) + (fixes ? FIXED_TAGS : 0));
    }
    if (marks)
        forecast_waiting(f, plan);
    if (marks || !f->sampled)
        return;
    struct spill_outlook outlook = {.records = f->record_bytes, .with_keys = f->with_keys,
                                    .arena_size = plan->arena_size};
    f->spills = !merges && spill_policy_will_fit(&outlook) == 0;
    f->memory = f->spills ? plan->fixed + 2 * (uint64_t)plan->arena_size
              : plan->fixed - plan->spilling + (merges ? 0 : (uint64_t)f->with_keys);
    f->memory += f->memory_of_large;
}

static bool fits(const struct planned *p, uint64_t all, double with_keys)
{
    struct memory_job job = *p->job;
    job.all = all;
    struct memory_rings rings = memory_plan_rings(&job);
    struct memory_plan plan = engine_memory_plan_any(&rings, p->opts, &p->in, p->output);
    struct spill_outlook outlook = {.with_keys = with_keys, .arena_size = plan.arena_size};
    return spill_policy_will_fit(&outlook) > 0;
}

/* Returns approximately the least memory with which everything fits, as the plan divides it. 0: none. */
static uint64_t memory_to_fit(const struct planned *p, double with_keys)
{
    enum { MOST_DOUBLINGS = 32 };
    uint64_t low = p->job->all, high = low;
    int doublings = 0;
    while (doublings++ < MOST_DOUBLINGS && !fits(p, high, with_keys))
        high *= 2;
    if (doublings > MOST_DOUBLINGS)
        return 0;
    while (high - low > high / 32) {
        uint64_t middle = low + (high - low) / 2;
        if (fits(p, middle, with_keys))
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* ------------------------------------------------------------ all together */

/* sam: the header of the output. */
static void look(struct forecast *f, const struct engine_opts *opts, const struct inputs *in, sam_hdr_t *sam,
                 const struct memory_rings *rings)
{
    struct input_sample sample;
    struct planned planned;
    struct memory_plan plan;
    plan_for(&planned, f, opts, in, written_use(&opts->out, sam, rings), rings);
    if (engine_memory_plan(&plan, rings, opts, &planned.in, planned.output, &f->latch) < 0)
        return;
    if (input_sample_take(&sample, in, &f->latch) < 0)
        goto out;
    f->looked = true;
    if (f->copies && !f->copies_none)
        f->copies_none = merged_inputs_copy_none(in, !rings->job.in_chunks);
    f->file_bytes = in->length;
    forecast_memory(f, &plan, &sample);
    if (f->of == FORECAST_SORMADUP)
        forecast_overhead(f, &planned, rings);
    if (f->sampled && sample_ratios_measure(&f->ratios, &sample, opts, sam, f->spills) < 0) {
        latch_fail(&f->latch, "out of memory");
        goto out;
    }
    if (f->spills) {
        forecast_runs(f, &plan);
        f->memory_to_fit = f->of == FORECAST_MARKDUP ? 0 : memory_to_fit(&planned, f->with_keys);
    }
    f->output = f->ratios.deflated * f->record_bytes;
out:
    input_sample_close(&sample);
}

/* Makes the forecast without reading the inputs, n of which are read in chunks. */
static void foresee(struct forecast *f, const struct engine_opts *opts, const struct memory_rings *rings, size_t n)
{
    const struct inputs none = {.n_chunked = n};
    struct planned planned;
    struct memory_plan plan;
    plan_for(&planned, f, opts, &none, (struct output_use){0}, rings);
    if (engine_memory_plan(&plan, rings, opts, &planned.in, planned.output, &f->latch) == 0)
        forecast_memory(f, &plan, NULL);
}

static struct forecast begin(enum forecast_of of, const struct engine_opts *opts)
{
    return (struct forecast){.of = of, .n_threads = opts->n_threads};
}

/* Begins a forecast with the information about copied blocks that exists before the inputs are opened. */
static struct forecast begin_merge(enum forecast_of of, const struct merge_opts *opts)
{
    struct forecast f = begin(of, &opts->common);
    f.copies = opts->common.out.copies;
    f.copies_none = f.copies ? merged_copies_none(opts) : NULL;
    return f;
}

/* Makes the forecast of a command that reads its inputs one after another. opts: those of sormadup; NULL: it is a
 * sort. */
static struct forecast forecast_in_turn(struct forecast f, const struct engine_opts *o,
                                        const struct sormadup_opts *opts)
{
    const struct engine engine = {.latch = &f.latch, .n_threads = o->n_threads};
    struct memory_rings rings = engine_memory_rings(o, &o->in, MEMORY_IN_TURN, true);
    struct inputs in;
    if (!all_files(o)) {
        f.collates = opts && opts->collate;
        foresee(&f, o, &rings, 0);
        return f;
    }
    struct inputs_options how = engine_memory_inputs(o, &o->in, &rings, &engine);
    int collates = inputs_open(&in, &how) < 0 ? -1 : opts ? sormadup_collates(opts, &in, &f.latch) : 0;
    f.collates = collates > 0;
    if (collates >= 0)
        look(&f, o, &in, in.each->header.sam, &rings);
    inputs_close(&in);
    return f;
}

struct forecast forecast_sort(const struct engine_opts *opts)
{
    struct merge_opts merge = {.common = *opts, .sorts = true};
    return forecast_in_turn(begin_merge(FORECAST_SORT, &merge), opts, NULL);
}

struct forecast forecast_sormadup(const struct sormadup_opts *opts)
{
    return forecast_in_turn(begin(FORECAST_SORMADUP, &opts->common), &opts->common, opts);
}

struct forecast forecast_merge(const struct merge_opts *opts)
{
    const struct engine_opts *o = &opts->common;
    struct memory_rings rings = engine_memory_rings(o, &o->in, MEMORY_AT_ONCE, true);
    struct merge_inputs m = {.join = NULL};
    struct forecast f = begin_merge(FORECAST_MERGE, opts);
    const struct engine engine = {.latch = &f.latch, .n_threads = o->n_threads};
    if (!all_files(o) || (opts->header && !may_look(opts->header))) {
        foresee(&f, o, &rings, o->in.n);
        return f;
    }
    if (merge_inputs_open(&m, opts, &rings, &engine) == 0)
        look(&f, o, &m.in, m.sam, &rings);
    for (size_t i = 0; i < m.in.n && f.looked; i++) {
        f.n_bam += m.in.each[i].format->framing != INPUT_RECORDS;
        f.n_sam += input_format_is_sam(m.in.each[i].format);
    }
    f.n_references = f.looked ? (size_t)sam_hdr_nref(m.sam) : 0;
    merge_inputs_close(&m);
    return f;
}

struct forecast forecast_markdup(const struct markdup_opts *opts)
{
    const struct engine_opts *o = &opts->common;
    struct forecast f = begin(FORECAST_MARKDUP, o);
    struct driver d = {.engine = {.latch = &f.latch, .n_threads = o->n_threads}};
    struct marked m = {.d = &d};
    f.keeps = opts->others;
    if (!all_files(o)) {
        struct memory_rings rings = engine_memory_rings(o, &o->in, MEMORY_AT_ONCE, true);
        foresee(&f, o, &rings, o->in.n);
        return f;
    }
    if (marked_look(&m, opts) == 0)
        look(&f, o, &m.in, m.sam, &m.rings);
    marked_look_end(&m);
    return f;
}
