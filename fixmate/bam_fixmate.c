/* SPDX-License-Identifier: MIT */
/* The driver of `fixmate`, which gives each record of a template the data of its mate.
 *
 *   in.bam --> blocks --> chunks ---> blocks --> out.bam
 *              inflate    templates   deflate    named
 *              tasks      fixed by    tasks      when complete
 *                         tasks
 *
 * fixed_open() makes the input a stream of fixed records (read/fixed_records.h). The main thread hands the work out and
 * takes it back in order (fixmate/fixed.h). A slice stays in memory until it is written, and a template that continues
 * in the next chunk is carried there. */
#include "fixmate/bam_fixmate.h"
#include "base/engine.h"
#include "base/clocks.h"
#include "engine/driver.h"
#include "fixmate/fixed.h"
#include "fixmate/fixmate_opts.h"
#include "write/written.h"

static void work(void *fixed)
{
    struct fixed *f = fixed;
    struct list_stream stream = fixed_stream(f);
    clocks_phase(f->d->engine.clocks, PHASE_WRITE);
    if (written_header(&f->d->out, f->in.each->header.sam, NULL, false, false) == 0)
        written_all(&f->d->out, &stream);
}

int bam_fixmate(const struct fixmate_opts *opts)
{
    struct latch latch = {0};
    struct driver d = {.engine.latch = &latch};
    struct fixed f = {.d = &d};
    if (driver_begin(&d, &opts->common) == 0 && fixed_open(&f, opts) == 0)
        driver_run(&d, &opts->common, &f.in, work, &f);
    uint64_t records = f.slices.taken.n;
    fixed_finish(&f);
    return driver_end(&d, records);
}
