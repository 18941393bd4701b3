/* SPDX-License-Identifier: MIT */
/* The driver of `fixmate`: how records that are grouped by name are told of their mates.
 *
 *   in.bam --> blocks --> chunks ---> blocks --> out.bam
 *              inflate    templates   deflate    renamed
 *              tasks      fixed by    tasks      when whole
 *                         tasks
 *
 * The main thread deals the work out, and takes it back in order (plan/fixed.h). Nothing is kept. */
#include <stdlib.h>
#include "bam_arena.h"
#include "bam_fixmate.h"
#include "base/machine.h"
#include "base/message.h"
#include "base/stats.h"
#include "base/task_ring.h"
#include "plan/fixed.h"
#include "plan/fixmate_opts.h"
#include "plan/sort_limits.h"
#include "report/sort_report.h"
#include "write/record_sink.h"
#include "write/written.h"

struct bam_fixmate {
    struct fixed fixed;
    struct written out;
    struct sort_report report;
};

/* Each record that the main thread saw in the input is there, or was dropped. */
static int compare(struct fixed *f)
{
    uint64_t seen = fixed_records_seen(f->records), dropped = fixed_records_dropped(f->records);
    return seen == f->n + dropped ? 0
         : latch_fail(&f->latch, "%s: %llu records were read, but %llu fixed and %llu left out. Memory may be faulty, "
                      "or this is our bug: please report it", sort_opts_input(&f->opts->common),
                      (unsigned long long)seen, (unsigned long long)f->n, (unsigned long long)dropped);
}

/* Number and checksum of the records, as they were fixed, must be those of the records that went out. */
static int fix_and_write(struct bam_fixmate *b)
{
    struct fixed *f = &b->fixed;
    struct record_list list;
    int found;
    stats_phase(f->stats, PHASE_WRITE);
    if (written_header(&b->out, f->in.each->header.sam, NULL, false, false) < 0)
        return -1;
    while ((found = fixed_next(f, &list)) > 0)
        if (record_sink_put(f->sink, &list) < 0)
            return -1;
    return found < 0 || compare(f) < 0 ? -1 : written_finish(&b->out, f->n, f->checksum);
}

/* A signal ends it here, as it ends a sort. */
static void leave_by_signal(struct bam_fixmate *b)
{
    if (!latch_signalled())
        return;
    progress_end(&b->fixed.progress, false);
    written_abandon(&b->out);
    sort_report_close(&b->report);
    latch_reraise();
}

/* What the main thread does while the other threads run tasks. */
static void in_team(void *fixmate)
{
    latch_hide_signals(false);
    fix_and_write(fixmate);
    leave_by_signal(fixmate);
}

int bam_fixmate(const struct fixmate_opts *opts)
{
    struct bam_fixmate b = {0};
    struct fixed *f = &b.fixed;
    const struct sort_opts *common = &opts->common;
    machine_share_heaps();
    if (sort_report_open(&b.report, &common->report, &f->latch) == 0 && fixed_open(f, opts, &b.out) == 0) {
        int later = f->in.n_threads + (f->rings.job.form == SINK_HTSLIB);
        int n_threads = sort_limits_threads(common, later);
        latch_hide_signals(true);
        task_team(n_threads, in_team, &b);
    }
    uint64_t records = f->n;
    fixed_finish(f);
    if (f->stats && !latch_tripped(&f->latch))
        sort_report_write(&b.report, f->stats, records, &f->latch);
    sort_report_close(&b.report);
    stats_free(f->stats);
    latch_reraise();
    if (!latch_tripped(&f->latch))
        return EXIT_SUCCESS;
    message_error("%s.", f->latch.message);
    return EXIT_FAILURE;
}
