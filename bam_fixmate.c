/* SPDX-License-Identifier: MIT */
/* The driver of `fixmate`: how records that are grouped by name are told of their mates.
 *
 *   in.bam --> blocks --> chunks ---> blocks --> out.bam
 *              inflate    templates   deflate    renamed
 *              tasks      fixed by    tasks      when whole
 *                         tasks
 *
 * The main thread deals the work out, and takes it back in order (plan/fixed.h). Nothing is kept. */
#include "bam_fixmate.h"
#include "base/machine.h"
#include "base/stats.h"
#include "plan/driver.h"
#include "plan/fixed.h"
#include "plan/fixmate_opts.h"
#include "write/record_sink.h"
#include "write/written.h"

/* Number and checksum of the records, as they were fixed, must be those of the records that went out. */
static void work(void *fixed)
{
    struct fixed *f = fixed;
    struct chunk_reader *chunks = fixed_records_chunks(f->records);
    const struct chunk_counts *in = chunk_reader_counts(chunks);
    struct record_list list;
    int found;
    stats_phase(f->d->stats, PHASE_WRITE);
    if (written_header(&f->d->out, f->in.each->header.sam, NULL, false, false) < 0)
        return;
    while ((found = fixed_next(f, &list)) > 0)
        if (record_sink_put(f->d->out.sink, &list) < 0)
            return;
    if (found == 0 && chunk_reader_compare(chunks) == 0)
        written_finish(&f->d->out, in->made, in->checksum);
}

int bam_fixmate(const struct fixmate_opts *opts)
{
    struct latch latch = {0};
    struct driver d = {.latch = &latch};
    struct fixed f = {.d = &d};
    machine_share_heaps();
    if (sort_report_open(&d.report, &opts->common.report, &latch) == 0 && fixed_open(&f, opts) == 0)
        driver_run(&d, &opts->common, &f.in, work, &f);
    uint64_t records = f.records ? chunk_reader_counts(fixed_records_chunks(f.records))->made : 0;
    fixed_finish(&f);
    return driver_end(&d, records);
}
