/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <htslib/kstring.h>
#include "bam/plain_header.h"
#include "bam_arena.h"
#include "base/stats.h"
#include "base/task_ring.h"
#include "plan/fixed.h"
#include "plan/fixmate_opts.h"
#include "plan/sort_memory.h"
#include "read/input_format.h"
#include "report/sort_report.h"
#include "write/record_sink.h"
#include "write/written.h"

enum { LEAST = 64 << 10 };       /* bytes of records in a slice: a block of the sink has records of two at most */

/* -------------------------------------------------------------------- open */

static const struct sort_opts *common(const struct fixed *f)
{
    return &f->opts->common;
}

/* Names of sorted records stand anywhere. As samtools, which looks no further than the header. */
static int check_order(struct fixed *f)
{
    sam_hdr_t *sam = f->in.each->header.sam, *lines = plain_header_is(sam) ? plain_header_lines(sam) : sam;
    kstring_t order = KS_INITIALIZE;
    if (!lines)
        return latch_fail(&f->latch, "out of memory for the header");
    bool sorted = sam_hdr_find_tag_hd(lines, "SO", &order) == 0 && strcmp(order.s, "coordinate") == 0;
    free(order.s);
    if (lines != sam)
        sam_hdr_destroy(lines);
    return sorted ? latch_fail(&f->latch, "%s: Coordinate sorted, require grouped/sorted by queryname. Nothing was "
                               "written; use samtools collate or sort -n first", sort_opts_input(common(f))) : 0;
}

static int open_input(struct fixed *f)
{
    const struct sort_opts *o = common(f);
    struct sort_inputs_options how = sort_memory_inputs(o, &o->in, &f->rings, &f->latch, f->stats);
    if (sort_inputs_open(&f->in, &how) < 0 || check_order(f) < 0)
        return -1;
    f->in.n_sam++;                               /* the templates are made in chunks, too */
    f->rules = f->opts->rules;
    f->rules.lengths = f->lengths = bam_header_lengths(f->in.each->header.sam);
    return f->lengths ? 0 : latch_fail(&f->latch, "out of memory");
}

/* Where the command line limits nothing, more than the usual is taken. */
static int check_memory(struct fixed *f)
{
    struct memory_plan plan;
    size_t output = written_memory(f->to, f->in.each->header.sam, &f->rings.job);
    return sort_memory_plan(&plan, &f->rings, common(f), &f->in, output, &f->latch);
}

static int open_records(struct fixed *f)
{
    struct fixed_records_options how = {
        .source = f->in.each->source,
        .file = f->in.each->format->window,
        .rules = &f->rules,
        .refuses_beyond = written_takes_reference(&common(f)->out.format),
        .use = f->rings.sam,
        .path = sort_opts_input(common(f)),
        .latch = &f->latch,
        .stats = f->stats,
    };
    if (!(f->slices = calloc(f->rings.n_slices, sizeof *f->slices)))
        return latch_fail(&f->latch, "out of memory");
    return (f->records = fixed_records_open(&how, &f->in.each->header)) ? 0 : -1;
}

int fixed_open(struct fixed *f, const struct fixmate_opts *opts, struct written *to)
{
    const struct sort_opts *o = &opts->common;
    f->opts = opts;
    f->to = to;
    if (!(f->stats = stats_new(o->n_threads, sort_report_detail(&o->report))))
        return latch_fail(&f->latch, "out of memory");
    stats_phase(f->stats, PHASE_OPEN);
    progress_start(&f->progress, o->progress, f->stats);
    f->rings = sort_memory_rings(o, &o->in, MEMORY_AT_ONCE, true);
    if (written_open(to, &o->out, &f->rings, sort_opts_input(o), &f->latch, f->stats) < 0)
        return -1;
    f->sink = to->sink;
    record_sink_set_progress(f->sink, &f->progress);
    return open_input(f) < 0 || check_memory(f) < 0 || written_prepare(to, f->in.each->header.sam, NULL) < 0 ? -1
         : open_records(f);
}

/* ------------------------------------------------------------------ records */

/* The slice that is being collected. */
static struct record_slice *next_slice(const struct fixed *f)
{
    return &f->slices[f->made % f->rings.n_slices].records;
}

static void free_slices(struct fixed *f)
{
    for (; f->freed < f->made; f->freed++) {
        struct fixed_slice *s = &f->slices[f->freed % f->rings.n_slices];
        if (!record_sink_passed(f->sink, s->mark))
            return;
        record_slice_clear(&s->records);
    }
}

/* Takes the records of a chunk. Mostly they are a slice as they are. */
static int collect(struct fixed *f)
{
    struct record_slice *to = next_slice(f), more = f->spare;
    if (to->n == 0)
        return fixed_records_take(f->records, to);
    int status = fixed_records_take(f->records, &more);
    if (status == 0 && record_slice_append(to, &more, NULL) < 0)
        status = latch_fail(&f->latch, "%s: out of memory", sort_opts_input(common(f)));
    f->spare = more;
    return status;
}

/* Whether the next slice has all its records, or there is none, or something has failed. */
static bool is_collected(void *fixed)
{
    struct fixed *f = fixed;
    free_slices(f);
    while (!latch_tripped(&f->latch) && !f->ended && f->made - f->freed < f->rings.n_slices) {
        if (next_slice(f)->records.n >= LEAST)
            return true;
        enum chunk_state state = fixed_records_advance(f->records);
        if (state == CHUNK_AWAITED)
            return false;
        if (state == CHUNK_MADE)
            collect(f);                          /* a failure is in the latch */
        f->ended = state == CHUNK_NONE;
    }
    return f->ended || latch_tripped(&f->latch);
}

static bool help(void *fixed)
{
    struct fixed *f = fixed;
    record_sink_make_task(f->sink);
    return record_sink_help(f->sink) || (!f->ended && fixed_records_help(f->records));
}

static int list_records(struct fixed *f, const struct record_slice *s)
{
    if (s->n > f->max) {
        struct record_ref *records = realloc(f->list.records, s->n * sizeof *records);
        if (!records)
            return latch_fail(&f->latch, "%s: out of memory", sort_opts_input(common(f)));
        f->list.records = records;
        f->max = s->n;
    }
    for (size_t i = 0; i < s->n; i++)
        f->list.records[i] = (struct record_ref){bam_key_record(s->records.p, s->keys[i]),
                                                 (uint32_t)bam_key_record_size(s->records.p, s->keys[i]), 0, 0};
    f->list.n = s->n;
    return 0;
}

/* What was given before is in the sink by now. */
static void leave_slice(struct fixed *f)
{
    if (!f->is_out)
        return;
    f->slices[f->made++ % f->rings.n_slices].mark = record_sink_mark(f->sink);
    f->is_out = false;
}

int fixed_next(struct fixed *f, struct record_list *list)
{
    leave_slice(f);
    progress_tick(&f->progress);
    task_wait(is_collected, help, f, f->stats);
    if (latch_tripped(&f->latch))
        return -1;
    const struct record_slice *s = next_slice(f);
    if (f->made - f->freed == f->rings.n_slices || s->n == 0)
        return 0;
    f->n += s->n;
    f->checksum += s->checksum;
    f->is_out = true;
    if (list_records(f, s) < 0)
        return -1;
    *list = f->list;
    return 1;
}

void fixed_finish(struct fixed *f)
{
    stats_phase(f->stats, PHASE_FINISH);
    if (!latch_tripped(&f->latch))
        written_commit(f->to);
    written_close(f->to);
    sort_inputs_close(&f->in);
    fixed_records_close(f->records);
    for (uint32_t i = 0; f->slices && i < f->rings.n_slices; i++)
        record_slice_free(&f->slices[i].records);
    free(f->slices);
    record_slice_free(&f->spare);
    free(f->list.records);
    free(f->lengths);
    stats_stop(f->stats);
    if (f->stats)
        progress_end(&f->progress, !latch_tripped(&f->latch));
}
