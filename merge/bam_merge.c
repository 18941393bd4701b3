/* SPDX-License-Identifier: MIT */
/* The driver of `merge`, which joins sorted files into one.
 *
 *   in1.bam --> blocks --> chunks --> slices --\
 *   in2.bam --> blocks --> chunks --> slices ---> ranges --> blocks --> out.bam
 *   ...         inflate    records    sorted      merge      deflate    named
 *               tasks      remapped,  already     tasks      tasks      when complete
 *                          with keys
 *
 * The main thread hands the work out and takes it back in order (merge/merged.h). Only the chunks that are read ahead
 * and the slices that are being merged are in memory. If a record is out of order, a warning says so, and the main
 * thread merges the rest alone (sort/greedy_merge.h). */
#include <stdlib.h>
#include <string.h>
#include "merge/bam_merge.h"
#include "base/engine.h"
#include "base/clocks.h"
#include "engine/driver.h"
#include "merge/merge_opts.h"
#include "merge/merged.h"
#include "write/record_sink.h"
#include "write/written.h"

static void work(void *merged)
{
    struct merged *m = merged;
    const struct sort_order *order = m->opts->sorts ? &m->opts->common.order : NULL;
    struct list_stream stream = merged_stream(m);
    clocks_phase(m->d->engine.clocks, PHASE_WRITE);
    if (written_header(&m->d->out, m->inputs.sam, order, false, false) == 0 && merged_begin(m) == 0
        && written_all(&m->d->out, &stream) == 0)
        merged_end(m);
}

/* The report's numbers of --copy-blocks. */
static struct report_copied copied(const struct merged *m)
{
    struct copied_count count = record_sink_copied(m->d->out.sink);
    const char *none = merged_copies_none(m->opts);
    return (struct report_copied){
        .asked = m->opts->common.out.copies,
        .blocks = count.blocks,
        .bytes = count.bytes,
        .why = none ? none : merged_inputs_copy_none(&m->inputs.in, false),
    };
}

static int finish(struct merged *m)
{
    struct driver *d = m->d;
    uint64_t records = merged_tally(m).n;
    bool is_whole = !latch_tripped(d->engine.latch);
    struct report_input *inputs = is_whole ? merged_report(m) : NULL;
    d->report.merged = (struct report_inputs){inputs, inputs ? m->n : 0};
    d->report.copied = is_whole ? copied(m) : (struct report_copied){.asked = false};
    merged_finish(m);
    int status = driver_end(d, records);
    free(inputs);
    return status;
}

int bam_merge(const struct merge_opts *opts)
{
    struct latch latch = {0};
    struct driver d = {.engine.latch = &latch};
    struct merged m = {.d = &d};
    if (driver_begin(&d, &opts->common) == 0 && merged_open(&m, opts) == 0)
        driver_run(&d, &opts->common, &m.inputs.in, work, &m);
    return finish(&m);
}

int bam_merge_for_sort(const struct engine_opts *opts, struct driver *d, char why[static LATCH_MESSAGE])
{
    struct merged m = {.d = d};
    const struct merge_opts merge = {.common = *opts, .sorts = true};
    const char *none = merged_copies_none(&merge);
    d->report.copied = (struct report_copied){.asked = true, .why = none ? none : why};
    if (none)
        return -1;
    if (merged_open(&m, &merge) == 0)
        driver_run(d, opts, &m.inputs.in, work, &m);
    if (!m.gave_up || out_file_take_back(&d->out.data) < 0)
        return finish(&m);
    merged_finish(&m);
    memcpy(why, d->engine.latch->message, LATCH_MESSAGE);
    return driver_begin_again(d, opts) < 0 ? driver_end(d, 0) : -1;
}
