/* SPDX-License-Identifier: MIT */
#include "bam/bam_header.h"
#include "base/engine.h"
#include "base/latch.h"
#include "base/version.h"
#include "engine/driver.h"
#include "engine/engine_memory.h"
#include "sormadup/sormadup.h"
#include "sormadup/sormadup_memory.h"
#include "sormadup/sormadup_opts.h"

int sormadup_collates(const struct sormadup_opts *opts, const struct inputs *in, struct latch *latch)
{
    int collates = opts->collate;
    for (size_t i = 0; i < in->n && collates == 0; i++)
        collates = bam_header_says(in->each[i].header.sam, "coordinate");
    return collates < 0 ? latch_fail(latch, "out of memory for the header") : collates;
}

size_t sormadup_overhead(const void *arg, const struct memory_rings *rings)
{
    const struct sormadup_use *use = arg;
    return sormadup_memory_marking(rings)
         + (use->collates ? collated_memory(use->opts, rings, &use->in, use->output) : 0);
}

static const char *path_of(const struct sormadup *c)
{
    return engine_opts_input(c->common);
}

/* Adds a @PG line, unless the user forbids it. */
static int add_step_line(const struct sormadup *c, sam_hdr_t *sam, const char *command_line)
{
    if (c->common->out.no_pg || !command_line
        || bam_header_mark_sorted(sam, NULL, false, version_of_both(), command_line) == 0)
        return 0;
    return latch_fail(c->d->engine.latch, "%s: the header could not be changed", path_of(c));
}

/* -------------------------------------------------------- opening the steps */

int sormadup_open_output(struct sormadup *c)
{
    c->rings = engine_memory_rings(c->common, &c->common->in, MEMORY_IN_TURN, true);
    return driver_open(c->d, c->common, &c->rings);
}

int sormadup_open_inputs(struct sormadup *c)
{
    struct inputs_options how = engine_memory_inputs(c->common, &c->common->in, &c->rings, &c->d->engine);
    if (inputs_open(&c->in, &how) < 0)
        return -1;
    sam_hdr_t *sam = c->in.each->header.sam;
    int collates = sormadup_collates(c->opts, &c->in, c->d->engine.latch);
    c->use = (struct sormadup_use){c->common, c->in, written_use(&c->common->out, sam, &c->rings), collates > 0};
    c->held = inputs_held(&c->in, sam, true);
    return collates < 0 ? -1 : add_step_line(c, sam, c->opts->cat_line);
}

int sormadup_open_collated(struct sormadup *c)
{
    struct collated_options how = {
        .behind = c->common,
        .rings = &c->rings,
        .output = c->use.output,
        .command_line = c->common->out.no_pg ? NULL : c->opts->collate_line,
        .engine = &c->d->engine,
        .progress = &c->d->progress,
    };
    return c->use.collates ? collated_open(&c->collated, &c->in, &how) : 0;
}

/* The search for orphans uses the memory that markdup will need only after the search has ended. */
int sormadup_open_fixed(struct sormadup *c)
{
    struct orphans_options search = {
        .store = engine_opts_store(c->common, &c->d->engine),
        .memory = sormadup_memory_marking(&c->rings),
        .path = path_of(c),
    };
    struct fixed_inputs_options how = {
        .rules = &c->opts->fixmate,
        .orphans = orphans_put,
        .orphans_arg = c->orphans = orphans_open(&search),
        .memory = c->rings.chunks,
        .engine = &c->d->engine,
    };
    return c->orphans ? fixed_inputs_open(&c->fixed, &c->in, &how) : -1;
}

int sormadup_open_sort(struct sormadup *c)
{
    struct sorted_options how = {
        .opts = c->common,
        .in = &c->common->in,
        .opened = &c->in,
        .size_hint = c->common->size_hint,
        .rings = &c->rings,
        .output = c->use.output,
        .engine = &c->d->engine,
        .progress = &c->d->progress,
    };
    how.output.more = sormadup_overhead;
    how.output.arg = &c->use;
    return sorted_open(&c->sorted, &how);
}

int sormadup_prepare_output(struct sormadup *c)
{
    return written_prepare(&c->d->out, c->sorted.sam, c->held, c->sorted.rule);
}

/* --------------------------------------------- when all input is sorted */

int sormadup_put_header(struct sormadup *c)
{
    const struct sormadup_opts *o = c->opts;
    const struct sorted *s = &c->sorted;
    if (add_step_line(c, s->sam, c->use.collates ? o->collated_line : o->fixmate_line) < 0
        || add_step_line(c, s->sam, o->sort_line) < 0)
        return -1;
    return sorted_put_header(s, &c->d->out);
}

int sormadup_begin_marking(struct sormadup *c)
{
    if (sorted_slices_begin(&c->merged, &c->sorted) < 0)
        return -1;
    c->in_order = sorted_slices_stream(&c->merged);
    struct marking_options marking = {
        .opts = &c->opts->markdup,
        .source = &c->in_order,
        .sam = c->sorted.sam,
        .slice_size = SORTED_SLICE,
        .left = sormadup_memory_marking(&c->rings) - sormadup_memory_least(c->common->n_threads),
        .d = c->d,
    };
    return marking_open(&c->marking, &marking);
}
