/* SPDX-License-Identifier: MIT */
/* The driver of `sort --check`, which reads a file as a merge would, and checks that it is in order.
 *
 *   in.bam --> blocks --> chunks ----> slices -----------> checksum
 *              inflate    records      compared with the   if --checksum
 *              tasks      and keys,    slice before        asks for it,
 *                         compared                         when complete
 *                         by tasks
 *
 * The main thread hands the work out and takes the slices in order (cli/checked.h). Tasks compute the checksum of
 * samtools. Only the chunks that are read ahead and these slices are in memory. */
#include "cli/sort_check.h"
#include "base/clocks.h"
#include "base/engine.h"
#include "base/latch.h"
#include "cli/checked.h"
#include "engine/driver.h"
#include "engine/engine_opts.h"

static void work(void *checked)
{
    struct checked *c = checked;
    int more = checked_begin(c) < 0 ? -1 : 1;
    clocks_phase(c->d->engine.clocks, PHASE_READ);
    while (more > 0)
        more = checked_next(c);
    if (more == 0)
        checked_end(c);
}

int sort_check(const struct engine_opts *opts)
{
    struct latch latch = {0};
    struct driver d = {.engine.latch = &latch};
    struct checked c = {.d = &d, .opts = opts};
    if (driver_begin(&d, opts) == 0 && checked_open(&c) == 0)
        driver_run(&d, opts, &c.in, work, &c);
    if (!latch_tripped(&latch))
        checked_print(&c);
    driver_finish(&d);
    checked_close(&c);
    return driver_end(&d, c.taken.n);
}
