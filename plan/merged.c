/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "bam/far_pos.h"
#include "bam/header_join.h"
#include "bam/plain_header.h"
#include "base/message.h"
#include "base/stats.h"
#include "base/task_ring.h"
#include "merge/merge_ring.h"
#include "order/sort_key.h"
#include "plan/memory_plan.h"
#include "plan/merge_opts.h"
#include "plan/merged.h"
#include "plan/sort_memory.h"
#include "read/input_format.h"
#include "report/sort_report.h"
#include "write/record_sink.h"
#include "write/written.h"

static const unsigned long long MIB = 1 << 20;

/* ------------------------------------------------------------ open: inputs */

static void plan_rings(struct merged *m)
{
    const struct sort_opts *o = &m->opts->common;
    m->rings = sort_memory_rings(o, &o->in, true, true);
    memory_plan_merge(&m->rings);
}

/* Headers of one text are one. */
static void share_header(struct merged *m, size_t number)
{
    size_t n, n_before;
    if (number == 0)
        return;
    sam_hdr_t **sam = &m->each[number].in.header.sam, *before = m->each[number - 1].in.header.sam;
    const char *text = plain_header_text(*sam, &n), *text_before = plain_header_text(before, &n_before);
    if (!text || !text_before || n != n_before || memcmp(text, text_before, n) != 0
        || sam_hdr_nref(*sam) != sam_hdr_nref(before))
        return;
    sam_hdr_destroy(*sam);
    sam_hdr_incr_ref(before);
    *sam = before;
}

static int open_input(struct merged *m, const char *path, const struct sort_inputs_options *how)
{
    size_t i = m->n++;
    struct sort_input *in = &m->each[i].in;
    if (sort_input_open(in, path, NULL, how) < 0
        || header_join_add(m->join, in->header.sam, path, &in->remap, &m->latch) < 0)
        return -1;
    sort_input_rest(in);
    share_header(m, i);
    return 0;
}

/* Of -h only the header counts. */
static int join_other_header(struct merged *m, const struct sort_inputs_options *how)
{
    const char *path = m->opts->header;
    struct sort_input in = {0};
    if (!path)
        return 0;
    int result = sort_input_open(&in, path, NULL, how) < 0
              || header_join_add(m->join, in.header.sam, path, NULL, &m->latch) < 0 ? -1 : 0;
    sort_input_close(&in);
    return result;
}

static int open_inputs(struct merged *m)
{
    const struct merge_opts *o = m->opts;
    const struct input_request *in = &o->common.in;
    bool by_coordinate = o->common.order.by == SORT_COORDINATE;
    struct header_join_options joins = {o->seed, o->join_groups, o->join_programs, o->groups_by_file, by_coordinate};
    struct sort_inputs_options how = sort_memory_inputs(&o->common, in, &m->rings, &m->latch, m->stats);
    how.waits = true;            /* of files, only the headers are read now */
    how.shuts = !sort_inputs_allow_files(in->n);
    m->join = header_join_new(&joins);
    m->each = calloc(in->n, sizeof *m->each);
    if (!m->join || !m->each)
        return latch_fail(&m->latch, "out of memory");
    if (join_other_header(m, &how) < 0)
        return -1;
    while (m->n < in->n)
        if (open_input(m, in->paths[m->n], &how) < 0)
            return -1;
    return (m->sam = header_join_end(m->join, &m->latch)) ? 0 : -1;
}

/* ------------------------------------------------------------- open: order */

static int prepare_order(struct merged *m)
{
    const struct sort_opts *o = &m->opts->common;
    bool far = false;
    if (!(m->rule = sort_rule_new(&o->order, m->sam)))
        return latch_fail(&m->latch, "out of memory");
    for (size_t i = 0; i < m->n; i++)
        far |= m->each[i].in.format->framing == INPUT_RECORDS && far_pos_fits(&o->out.format);
    if (far)
        sort_rule_expect_far(m->rule);
    m->compares = sort_key_decides(m->rule) ? NULL : m->rule;
    m->in_order = true;
    /* What CRAM must know of records before the first one is written (write/cram_settings.h), is not known yet. */
    if (written_takes_reference(&o->out.format) && !(m->lengths = bam_header_lengths(m->sam)))
        return latch_fail(&m->latch, "out of memory");
    return 0;
}

static struct memory_use use_of(const struct merged *m)
{
    const struct sort_opts *o = &m->opts->common;
    struct memory_use use = {
        .htslib = written_memory(m->to, m->sam, &m->rings.job),
        .n_sam = m->n,
        .stats = stats_memory(o->n_threads, sort_report_detail(&o->report)),
        .parsed = !plain_header_is(m->sam) || m->rings.job.form == SINK_HTSLIB,
        .header = (size_t)sam_hdr_length(m->sam),
        .references = (size_t)sam_hdr_nref(m->sam),
    };
    for (size_t i = 0; i < m->n; i++) {
        const struct input_format *format = m->each[i].in.format;
        use.htslib += format->memory;
        use.n_sam += input_format_is_sam(format);
        if (i > 0 && m->each[i].in.header.sam == m->each[i - 1].in.header.sam)
            continue;
        use.header += (size_t)sam_hdr_length(m->each[i].in.header.sam);
        use.references += (size_t)sam_hdr_nref(m->each[i].in.header.sam);
    }
    return use;
}

/* Bytes that a merge takes: nothing is spilled, so all of it is fixed. */
static uint64_t takes(const struct merged *m, const struct memory_rings *rings, const struct memory_use *use)
{
    struct memory_plan plan = memory_plan_make(rings, use);
    return plan.fixed - plan.spilling + m->n * memory_plan_slices(rings);
}

/* MiB with which it takes no more than that. Of what is more, htslib may take two thirds. */
static unsigned long long enough(const struct merged *m, const struct memory_use *use)
{
    struct memory_job job = m->rings.job;
    struct memory_rings rings;
    struct memory_use grown;
    do {
        job.all = (job.all / MIB + 1) * MIB;
        rings = memory_plan_rings(&job);
        memory_plan_merge(&rings);
        grown = *use;
        grown.htslib += use->htslib ? (job.all - m->rings.job.all) / 3 * 2 : 0;
    } while (takes(m, &rings, &grown) > job.all && job.all < BAM_ARENA_MAX);
    return job.all / MIB + 1;                    /* what the program takes at its start differs by some pages */
}

/* Where the command line limits nothing, more than the usual is taken. */
static int check_memory(struct merged *m)
{
    const struct sort_opts *o = &m->opts->common;
    struct memory_use use = use_of(m);
    if (o->memory_beside > 0 || takes(m, &m->rings, &use) <= m->rings.job.all)
        return 0;
    return latch_fail(&m->latch, "%s: --total-memory of %llu MiB is too little: with -@ %d, %zu inputs and these "
                      "headers, %lluM is enough. Nothing was written", sort_opts_input(o), m->rings.job.all / MIB,
                      o->n_threads, m->n, enough(m, &use));
}

int merged_open(struct merged *m, const struct merge_opts *opts, struct written *to)
{
    const struct sort_opts *o = &opts->common;
    m->opts = opts;
    m->to = to;
    if (!(m->stats = stats_new(o->n_threads, sort_report_detail(&o->report))))
        return latch_fail(&m->latch, "out of memory");
    stats_phase(m->stats, PHASE_OPEN);
    progress_start(&m->progress, o->progress, m->stats);
    plan_rings(m);
    if (written_open(to, &o->out, &m->rings, sort_opts_input(o), &m->latch, m->stats) < 0)
        return -1;
    m->sink = to->sink;
    record_sink_set_progress(m->sink, &m->progress);
    return open_inputs(m) < 0 || prepare_order(m) < 0 || check_memory(m) < 0
        || written_prepare(to, m->sam, m->rule) < 0 ? -1 : 0;
}

int merged_threads_of_htslib(const struct merged *m)
{
    int n = 0;
    for (size_t i = 0; i < m->n; i++)
        n += m->each[i].in.format->reader && !m->each[i].in.format->containers;
    return n;
}

/* -------------------------------------------------------- runs of the merge */

/* Warns once, of the first record in all inputs that was found where it does not belong. */
static void warn_of_fallen(struct merged *m, const struct sliced_input *input)
{
    record_sink_forget_order(m->sink);
    if (m->in_order)
        message_warning("%s is not sorted as the merge is to be: record %llu belongs before the record in front of it. "
                        "From here on, the merge takes what comes first in each input, as samtools does",
                        input->in.name, (unsigned long long)input->fallen);
    m->in_order = false;
}

static bool is_passed(const void *sink, uint64_t mark)
{
    return record_sink_passed(sink, mark);
}

/* Goes on reading the input as far as needs no waiting. An error is in the latch, where all who wait look. */
static void advance(struct merged *m, struct sliced_input *input)
{
    sliced_input_free(input, is_passed, m->sink);
    if (sliced_input_advance(input) == 0 && input->fallen)
        warn_of_fallen(m, input);
}

static bool in_order(const void *merged)
{
    return ((const struct merged *)merged)->in_order;
}

static bool first_key(const void *merged, size_t run, size_t slice, uint64_t *key)
{
    const struct sliced_input *input = &((const struct merged *)merged)->each[run];
    if (slice >= input->made)
        return false;
    *key = sliced_input_at(input, slice)->keys->sort;
    return true;
}

static bool ready(void *merged, size_t run, size_t slice, bool idle)
{
    struct merged *m = merged;
    (void)idle;                  /* there is always room for the slices of one range, and one more */
    if (!sliced_input_ready(&m->each[run], slice))
        advance(m, &m->each[run]);
    return !latch_tripped(&m->latch) && sliced_input_ready(&m->each[run], slice);
}

static struct merge_source slice(const void *merged, size_t run, size_t number)
{
    const struct record_slice *s = sliced_input_at(&((const struct merged *)merged)->each[run], number);
    return (struct merge_source){s->keys, s->keys + s->n, s->records.p};
}

static int leave(void *merged, size_t run, size_t number)
{
    struct merged *m = merged;
    sliced_input_leave(&m->each[run], number, record_sink_mark(m->sink));
    return 0;
}

static void refill(void *merged)
{
    struct merged *m = merged;
    for (size_t i = 0; i < m->n && !latch_tripped(&m->latch); i++)
        advance(m, &m->each[i]);
}

static bool help(void *merged)
{
    struct merged *m = merged;
    refill(m);
    for (size_t i = 0; i < m->n && !latch_tripped(&m->latch); i++) {
        m->helped = (m->helped + 1) % m->n;
        if (sliced_input_help(&m->each[m->helped]))
            return true;
    }
    return false;
}

/* --------------------------------------------------------------- the merge */

/* The first slice of each input is ready, or there is none. */
static bool is_begun(void *merged)
{
    struct merged *m = merged;
    bool begun = true;
    for (size_t i = 0; i < m->n && !latch_tripped(&m->latch); i++)
        begun &= ready(m, i, 0, false) || m->each[i].ended;
    return begun || latch_tripped(&m->latch);
}

static int begin_inputs(struct merged *m)
{
    struct sliced_input_options how = {m->rings.n_slices, m->compares, &m->latch};
    for (size_t i = 0; i < m->n; i++) {
        m->each[i].wish.lengths = m->lengths;
        m->each[i].wish.learns = i == 0 && m->compares ? m->rule : NULL;
        if (sliced_input_begin(&m->each[i], &how) < 0)
            return -1;
    }
    task_wait(is_begun, help, m, m->stats);
    return latch_tripped(&m->latch) ? -1 : 0;
}

int merged_begin(struct merged *m)
{
    struct bam_arena none = {.rule = m->compares};
    struct merge_ring_options how = {
        .arenas = {&none},
        .runs = {
            .n = m->n,
            .n_buffers = sliced_input_in_range(m->rings.n_slices),
            .one_is_enough = true,
            .reader = m,
            .in_order = in_order,
            .first_key = first_key,
            .ready = ready,
            .slice = slice,
            .leave = leave,
            .refill = refill,
            .help = help,
        },
        .sink = m->sink,
        .n_ranges = m->rings.merge_ranges,
        .n_spare = m->rings.merge_spare,
        .n_records = m->rings.merge_records,
        .n_threads = m->opts->common.n_threads,
        .latch = &m->latch,
        .stats = m->stats,
    };
    if (begin_inputs(m) < 0)
        return -1;
    return (m->ring = merge_ring_open(&how)) ? 0 : -1;
}

int merged_next(struct merged *m, struct record_list *list)
{
    progress_tick(&m->progress);
    return merge_ring_next(m->ring, list);
}

uint64_t merged_count(const struct merged *m)
{
    uint64_t n = 0;
    for (size_t i = 0; i < m->n; i++)
        n += m->each[i].n;
    return n;
}

uint64_t merged_checksum(const struct merged *m)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < m->n; i++)
        sum += m->each[i].checksum;
    return sum;
}

void merged_finish(struct merged *m)
{
    stats_phase(m->stats, PHASE_FINISH);
    if (!latch_tripped(&m->latch))
        written_commit(m->to);
    written_close(m->to);
    merge_ring_close(m->ring);
    for (size_t i = 0; i < m->n; i++)
        sliced_input_close(&m->each[i]);
    free(m->each);
    header_join_free(m->join);
    sam_hdr_destroy(m->sam);
    free(m->lengths);
    sort_rule_free(m->rule);
    stats_stop(m->stats);
    if (m->stats)
        progress_end(&m->progress, !latch_tripped(&m->latch));
}
