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
#include <stdio.h>
#include <stdlib.h>
#include "bam_arena.h"
#include "bam_merge.h"
#include "base/machine.h"
#include "base/message.h"
#include "base/stats.h"
#include "base/task_ring.h"
#include "plan/merge_opts.h"
#include "plan/merged.h"
#include "plan/sort_limits.h"
#include "report/sort_report.h"
#include "write/record_list.h"
#include "write/record_sink.h"
#include "write/written.h"

struct bam_merge {
    struct merged merged;
    struct written out;
    struct sort_report report;
};

/* Number and checksum of the records, as they were rewritten, must be those of the records that went out. */
static int merge_and_write(struct bam_merge *b)
{
    struct merged *m = &b->merged;
    struct record_list list;
    int found;
    stats_phase(m->stats, PHASE_WRITE);
    if (written_header(&b->out, m->inputs.sam, NULL, false, false) < 0 || merged_begin(m) < 0)
        return -1;
    while ((found = merged_next(m, &list)) > 0)
        if (record_sink_put(m->sink, &list) < 0)
            return -1;
    return found < 0 ? -1 : written_finish(&b->out, merged_count(m), merged_checksum(m));
}

/* A signal ends the merge here, as it ends a sort. */
static void leave_by_signal(struct bam_merge *b)
{
    if (!latch_signalled())
        return;
    progress_end(&b->merged.progress, false);
    written_abandon(&b->out);
    sort_report_close(&b->report);
    latch_reraise();
}

/* What the main thread does while the other threads run tasks. */
static void in_team(void *merge)
{
    latch_hide_signals(false);
    merge_and_write(merge);
    leave_by_signal(merge);
}

int bam_merge(const struct merge_opts *opts)
{
    struct bam_merge b = {0};
    struct merged *m = &b.merged;
    const struct sort_opts *common = &opts->common;
    machine_share_heaps();
    if (sort_report_open(&b.report, &common->report, &m->latch) == 0 && merged_open(m, opts, &b.out) == 0) {
        int later = m->inputs.in.n_threads + (m->rings.job.form == SINK_HTSLIB);
        int n_threads = sort_limits_threads(common, later);
        latch_hide_signals(true);
        task_team(n_threads, in_team, &b);
    }
    uint64_t records = merged_count(m);
    merged_finish(m);
    if (m->stats && !latch_tripped(&m->latch))
        sort_report_write(&b.report, m->stats, records, &m->latch);
    sort_report_close(&b.report);
    stats_free(m->stats);
    latch_reraise();
    if (!latch_tripped(&m->latch))
        return EXIT_SUCCESS;
    message_error("%s.", m->latch.message);
    return EXIT_FAILURE;
}
