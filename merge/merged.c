/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bam/long_pos.h"
#include "base/byte_window.h"
#include "base/engine.h"
#include "base/message.h"
#include "base/out_file.h"
#include "base/clocks.h"
#include "base/task_ring.h"
#include "sort/merge_ring.h"
#include "order/sort_key.h"
#include "engine/memory_plan.h"
#include "merge/merge_opts.h"
#include "merge/merged.h"
#include "engine/engine_memory.h"
#include "read/input_format.h"
#include "report/report.h"
#include "write/record_sink.h"
#include "write/written.h"

/* -------------------------------------------------------------------- open */

static bool all_are_files(const struct input_request *in)
{
    for (size_t i = 0; i < in->n; i++)
        if (strcmp(in->paths[i], "-") == 0 || !input_name_is_file(in->paths[i]))
            return false;
    return true;
}

/* A merge that replaces a sort may give up, so the inputs must be readable again, and the output writable again. */
const char *merged_copies_none(const struct merge_opts *opts)
{
    const struct engine_opts *o = &opts->common;
    const char *none = engine_memory_copies_none(o);
    if (!none && (opts->region || opts->bed))
        none = "-R and -L leave records out";
    if (none || !opts->sorts)
        return none;
    return o->order.by == SORT_MINHASH ? "-M changes records"
         : !all_are_files(&o->in) ? "not all inputs are files, which can be read twice"
         : !out_file_can_take_back(o->out.path)
           ? "the output cannot be written again; that of -o FILE can" : NULL;
}

static int prepare_order(struct merged *m)
{
    const struct engine_opts *o = &m->opts->common;
    if (!(m->rule = sort_rule_new(&o->order, m->inputs.sam)))
        return latch_fail(m->d->engine.latch, "out of memory");
    if (m->inputs.in.n_converted && long_pos_fits(&o->out.format))
        sort_rule_expect_far(m->rule);
    if (m->opts->groups_by_file)
        sort_rule_expect_marks(m->rule);
    m->compares = sort_key_decides(m->rule) ? NULL : m->rule;
    /* The properties of records that CRAM needs before the first one is written (hts/cram_settings.h) are not known
     * yet. */
    if (written_takes_reference(&o->out.format) && !(m->lengths = bam_header_lengths(m->inputs.sam)))
        return latch_fail(m->d->engine.latch, "out of memory");
    return 0;
}

/* Gives up a merge that replaces a sort. */
static int give_up(struct merged *m, const char *why)
{
    m->gave_up = true;
    return latch_fail(m->d->engine.latch, "%s", why);
}

/* Plans the memory. If the command line sets no limit, more than the default is allowed. A merge that replaces a sort
 * gives up if memory is short. */
static int check_memory(struct merged *m)
{
    struct memory_plan plan;
    const struct engine_opts *o = &m->opts->common;
    struct output_use output = written_use(&o->out, m->inputs.sam, &m->rings);
    if (!m->opts->sorts)
        return engine_memory_plan(&plan, &m->rings, o, &m->inputs.in, output, m->d->engine.latch);
    plan = engine_memory_plan_any(&m->rings, o, &m->inputs.in, output);
    return memory_plan_takes(&plan) <= m->rings.job.all ? 0
         : give_up(m, "a merge needs more memory than is available");
}

const char *merged_inputs_copy_none(const struct inputs *in, bool sorts)
{
    for (size_t i = 0; sorts && i < in->n; i++)
        if (in->each[i].format->kind != INPUT_BAM_BLOCKS)
            return "not all inputs are BAM";
    return in->each->format->filter ? "a filter leaves records out" : NULL;
}

static int check_inputs(struct merged *m)
{
    const char *none = m->opts->sorts ? merged_inputs_copy_none(&m->inputs.in, true) : NULL;
    return none ? give_up(m, none) : 0;
}

int merged_open(struct merged *m, const struct merge_opts *opts)
{
    const struct engine_opts *o = &opts->common;
    m->opts = opts;
    m->rings = engine_memory_rings(o, &o->in, MEMORY_AT_ONCE, true);
    if (driver_open(m->d, o, &m->rings) < 0
        || merge_inputs_open(&m->inputs, opts, &m->rings, &m->d->engine) < 0 || check_inputs(m) < 0
        || prepare_order(m) < 0 || check_memory(m) < 0
        || written_prepare(&m->d->out, m->inputs.sam, inputs_held(&m->inputs.in, m->inputs.sam, false),
                           sort_rule_takes_marks(m->rule) ? NULL : m->rule) < 0)
        return -1;
    m->n = m->inputs.in.n;
    return (m->each = calloc(m->n, sizeof *m->each)) ? 0 : latch_fail(m->d->engine.latch, "out of memory");
}

/* -------------------------------------------------------- runs of the merge */

/* Warns once, of the first record in all inputs that is out of order. */
static void warn_of_disorder(struct merged *m, const struct sliced_input *input)
{
    record_sink_forget_order(m->d->out.sink);
    if (m->opts->sorts) {
        m->gave_up = true;
        latch_fail(m->d->engine.latch, "%s: record %llu belongs before the preceding record", input->in->name,
                   (unsigned long long)input->out_of_order);
    } else if (!m->out_of_order)
        message_warning("%s is not in the order of the merge: record %llu belongs before the preceding record. "
                        "From here on, the merge takes the records of each input as they come, as samtools does",
                        input->in->name, (unsigned long long)input->out_of_order);
    m->out_of_order = true;
}

/* Closes an input whose records are no longer used. Freeing its memory takes long, so a task does it. */
static void end_input(void *merged, uint32_t number)
{
    struct merged *m = merged;
    sliced_input_close(&m->each[number]);
    input_end(&m->inputs.in.each[number]);
}

/* Continues reading the input as far as it need not wait. An error is recorded in the latch, where all waiting threads
 * find it. */
static void read_on(struct merged *m, struct sliced_input *input)
{
    uint32_t number = (uint32_t)(input - m->each);
    sliced_input_free(input, record_sink_passed_of, m->d->out.sink);
    if (sliced_input_advance(input) == 0 && input->out_of_order)
        warn_of_disorder(m, input);
    if (input->ended && input->freed == input->made && task_ring_state(&m->ends, number) == TASK_FREE)
        task_ring_submit(&m->ends, number);
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
    struct sliced_input *input = &m->each[run];
    if (!sliced_input_ready(input, slice))
        read_on(m, input);
    bool is_ready = sliced_input_ready(input, slice);
    /* There is always room for the slices of one range, and one more. */
    if (input->is_awaited ? is_ready : idle && !is_ready)
        sliced_input_await(input, !is_ready, clocks_wall(m->d->engine.clocks));
    return is_ready && !latch_tripped(m->d->engine.latch);
}

static struct merge_way slice(const void *merged, size_t run, size_t number)
{
    const struct record_slice *s = sliced_input_at(&((const struct merged *)merged)->each[run], number);
    return (struct merge_way){s->keys, s->keys + s->n, s->records.p};
}

static int leave(void *merged, size_t run, size_t number)
{
    struct merged *m = merged;
    sliced_input_leave(&m->each[run], number, record_sink_mark(m->d->out.sink));
    return 0;
}

/* Continues some of the inputs in turn. The input that the merge needs next is continued when the merge asks whether it
 * is ready. */
static void refill(void *merged)
{
    enum { LEAST_AT_ONCE = 16, SHARE_AT_ONCE = 4 };
    struct merged *m = merged;
    size_t share = m->n / SHARE_AT_ONCE, most = share > LEAST_AT_ONCE ? share : LEAST_AT_ONCE;
    for (size_t i = 0; i < m->n && i < most && !latch_tripped(m->d->engine.latch); i++) {
        m->refilled = (m->refilled + 1) % m->n;
        read_on(m, &m->each[m->refilled]);
    }
    task_batches_submit(&m->tasks);
}

static bool help_inputs(void *merged)
{
    struct merged *m = merged;
    refill(m);
    for (size_t i = 0; i < m->n && !latch_tripped(m->d->engine.latch); i++) {
        m->helped = (m->helped + 1) % m->n;
        if (sliced_input_help(&m->each[m->helped]))
            return true;
    }
    return false;
}

/* --------------------------------------------------------------- the merge */

/* Returns whether the first slice of each input is ready, or there is none. */
static bool is_begun(void *merged)
{
    struct merged *m = merged;
    bool begun = true;
    for (size_t i = 0; i < m->n && !latch_tripped(m->d->engine.latch); i++)
        begun &= ready(m, i, 0, false) || m->each[i].ended;
    return begun || latch_tripped(m->d->engine.latch);
}

/* Number of slices that each input owns; the others are shared. */
static uint32_t own_slices(const struct merged *m)
{
    return m->rings.n_shared ? (uint32_t)SLICED_INPUT_LEAST + m->rings.job.copies : m->rings.n_slices;
}

static int open_pool(struct merged *m)
{
    const struct memory_rings *rings = &m->rings;
    struct chunk_pool_options how = {
        .n_inputs = m->n,
        .own_chunks = CHUNK_POOL_OWN,
        .own_slices = own_slices(m),
        .borrows = rings->borrows,
        .n_shared = rings->n_shared,
        .records_size = rings->chunks.records_size,
    };
    return rings->n_shared == 0 || chunk_pool_open(&m->pool, &how) == 0
         ? 0 : latch_fail(m->d->engine.latch, "out of memory");
}

/* Returns whether opening the input involves no other input, and no thread or function of htslib. */
static bool begins_alone(const struct input *in)
{
    return input_format_may_suspend(in->format) && in->format->framing != INPUT_RECORDS && !in->format->filter;
}

/* Begins reading an input. An error is recorded in the latch. */
static void begin_input(void *merged, uint32_t number)
{
    struct merged *m = merged;
    struct sliced_input *input = &m->each[number];
    struct sliced_input_options how = {m->rings.n_slices, NULL, m->compares, &m->d->engine};
    if (m->rings.n_shared > 0) {
        how.pool = &m->pool;
        how.n_slices = own_slices(m) + m->rings.borrows;
    }
    if (input->in || latch_tripped(m->d->engine.latch))
        return;
    input->request.lengths = m->lengths;
    input->request.learns = number == 0 && m->compares ? m->rule : NULL;
    bool is_alone = begins_alone(&m->inputs.in.each[number]);
    if (sliced_input_begin(input, &m->inputs.in.each[number], &how) == 0 && is_alone)
        input_use_batches(&m->inputs.in.each[number], &m->tasks);
}

static int begin_inputs(struct merged *m)
{
    struct task_ring_options begins = {(uint32_t)m->n, m->rings.job.n_threads, true, begin_input, m, false};
    struct task_ring_options ends = {(uint32_t)m->n, 0, false, end_input, m, false};
    if (task_ring_open(&m->begins, &begins) < 0 || task_ring_open(&m->ends, &ends) < 0)
        return latch_fail(m->d->engine.latch, "out of memory");
    if (open_pool(m) < 0)
        return -1;
    for (uint32_t i = 0; i < m->n; i++)
        if (!begins_alone(&m->inputs.in.each[i]))
            begin_input(m, i);
    task_ring_hand_out_all(&m->begins);
    task_ring_take_all(&m->begins, m->d->engine.clocks);
    if (latch_tripped(m->d->engine.latch))
        return -1;
    task_wait(is_begun, help_inputs, m, m->d->engine.clocks);
    return latch_tripped(m->d->engine.latch) ? -1 : 0;
}

int merged_begin(struct merged *m)
{
    struct bam_arena none = {.rule = m->compares};
    struct merge_ring_options how = {
        .arenas = {&none},
        .runs = {
            .n = m->n,
            .n_buffers = sliced_input_in_range(own_slices(m), m->rings.job.copies),
            .n_shared = m->rings.n_shared,
            .one_is_enough = true,
            .reader = m,
            .out_of_order = &m->out_of_order,
            .first_key = first_key,
            .ready = ready,
            .slice = slice,
            .leave = leave,
            .refill = refill,
            .help = help_inputs,
        },
        .sink = m->d->out.sink,
        .n_ranges = m->rings.merge_ranges,
        .n_spare = m->rings.merge_spare,
        .n_records = m->rings.merge_records,
        .engine = &m->d->engine,
    };
    if (begin_inputs(m) < 0)
        return -1;
    return (m->ring = merge_ring_open(&how)) ? 0 : -1;
}

static enum chunk_state advance(void *merged)
{
    return merge_ring_advance(((struct merged *)merged)->ring);
}

static int take(void *merged, struct record_list *list)
{
    struct merged *m = merged;
    progress_tick(&m->d->progress);
    task_batches_submit(&m->tasks);
    return merge_ring_take(m->ring, list);
}

static bool help(void *merged)
{
    return merge_ring_help(((struct merged *)merged)->ring);
}

void merged_end(struct merged *m)
{
    for (size_t i = 0; i < m->n && !latch_tripped(m->d->engine.latch); i++)
        read_on(m, &m->each[i]);
    if (!latch_tripped(m->d->engine.latch))
        chunk_pool_end(&m->pool);
}

struct tally merged_tally(const struct merged *m)
{
    struct tally sum = {.n = 0};
    for (size_t i = 0; m->each && i < m->n; i++)
        tally_add(&sum, m->each[i].taken);
    return sum;
}

/* Checks that no record was lost before the merge took it. */
static int end(void *merged, struct tally *given)
{
    const struct merged *m = merged;
    *given = merged_tally(m);
    for (size_t i = 0; i < m->n; i++)
        if (sliced_input_end(&m->each[i], "on the way into the merge") < 0)
            return -1;
    return 0;
}

struct list_stream merged_stream(struct merged *m)
{
    return (struct list_stream){advance, take, help, end, m};
}

struct report_input *merged_report(const struct merged *m)
{
    struct report_input *each = m->opts->common.report.format ? calloc(m->n, sizeof *each) : NULL;
    for (size_t i = 0; each && i < m->n; i++) {
        const struct sliced_input *s = &m->each[i];
        const struct input_format *format = s->in->format;
        bool is_read_by_us = format->window && format->framing != INPUT_RECORDS && !s->in->by_region;
        uint64_t size = s->in->by_region ? REPORT_UNKNOWN
                                         : report_place_of("", format->opt.path, STDIN_FILENO).bytes;
        each[i] = (struct report_input){
            .name = s->in->name,
            .bytes = size == REPORT_UNKNOWN && is_read_by_us ? format->window->offset : size,
            .records = s->taken.n,
            .waits = s->waits,
            .waited = (double)s->waited / 1e9,
        };
    }
    return each;
}

void merged_finish(struct merged *m)
{
    driver_finish(m->d);
    merge_ring_close(m->ring);
    for (size_t i = 0; m->each && i < m->n; i++)
        sliced_input_close(&m->each[i]);
    merge_inputs_close(&m->inputs);
    free(m->each);
    chunk_pool_close(&m->pool);
    task_ring_close(&m->begins, false);
    task_ring_close(&m->ends, false);
    free(m->lengths);
    sort_rule_free(m->rule);
}
