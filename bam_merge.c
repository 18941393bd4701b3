/* SPDX-License-Identifier: MIT */
/* The driver of `merge`: how sorted files become one.
 *
 *   in1.bam --> blocks --> chunks --> slices --\
 *   in2.bam --> blocks --> chunks --> slices ---> ranges --> blocks --> out.bam
 *   ...         inflate    records    sorted      merge      deflate    renamed
 *               tasks      remapped,  already     tasks      tasks      when whole
 *                          with keys
 *
 * The main thread deals the work out, and takes it back in order (plan/merged.h). Nothing is kept but the slices that
 * the merge is in. */
#include <stdlib.h>
#include "bam_merge.h"
#include "base/machine.h"
#include "base/stats.h"
#include "plan/driver.h"
#include "plan/merge_opts.h"
#include "plan/merged.h"
#include "write/record_list.h"
#include "write/record_sink.h"
#include "write/written.h"

/* Number and checksum of the records, as they were rewritten, must be those of the records that went out. */
static int merge_and_write(struct merged *m)
{
    struct record_list list;
    int found;
    stats_phase(m->stats, PHASE_WRITE);
    if (written_header(m->to, m->inputs.sam, NULL, false, false) < 0 || merged_begin(m) < 0)
        return -1;
    while ((found = merged_next(m, &list)) > 0)
        if (record_sink_put(m->sink, &list) < 0)
            return -1;
    if (found < 0 || written_finish(m->to, merged_count(m), merged_checksum(m)) < 0)
        return -1;
    merged_end(m);
    return 0;
}

static void work(void *merged)
{
    merge_and_write(merged);
}

int bam_merge(const struct merge_opts *opts)
{
    struct merged m = {0};
    struct driver d = {.latch = &m.latch, .progress = &m.progress};
    machine_share_heaps();
    if (sort_report_open(&d.report, &opts->common.report, &m.latch) == 0 && merged_open(&m, opts, &d.out) == 0)
        driver_run(&d, &opts->common, &m.inputs.in, work, &m);
    uint64_t records = merged_count(&m);
    struct report_input *inputs = latch_tripped(&m.latch) ? NULL : merged_report(&m);
    d.report.merged = (struct report_inputs){inputs, inputs ? m.n : 0};
    merged_finish(&m);
    int status = driver_end(&d, m.stats, records);
    free(inputs);
    return status;
}
