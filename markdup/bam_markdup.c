/* SPDX-License-Identifier: MIT */
/* The driver of `markdup`, which marks the duplicates in a sorted file.
 *
 *   in.bam --> blocks --> chunks --> keys --> sets ---> waiting --> blocks --> out.bam
 *              inflate    records    tasks    tasks,    marked      deflate    named
 *              tasks      by tasks            by key    by tasks    tasks      when complete
 *
 * marked_open() joins the stream of the input to a marking (markdup/marking.h), which `sormadup` has, too. The main
 * thread hands the work out and takes it back in order (markdup/marked_flow.h). A slice waits, in memory
 * or in a temporary file, until no set is open that began in it or before it. */
#include "markdup/bam_markdup.h"
#include "base/engine.h"
#include "base/clocks.h"
#include "engine/driver.h"
#include "markdup/markdup_opts.h"
#include "markdup/marked.h"
#include "write/written.h"

static void work(void *marked)
{
    struct marked *m = marked;
    struct list_stream stream = marking_stream(&m->marking);
    clocks_phase(m->d->engine.clocks, PHASE_WRITE);
    if (written_header(&m->d->out, m->sam, NULL, false, false) == 0 && marked_begin(m) == 0)
        written_all(&m->d->out, &stream);
}

int bam_markdup(const struct markdup_opts *opts)
{
    struct latch latch = {0};
    struct driver d = {.engine.latch = &latch};
    struct marked m = {.d = &d};
    if (driver_begin(&d, &opts->common) == 0 && marked_open(&m, opts) == 0)
        driver_run(&d, &opts->common, &m.in, work, &m);
    uint64_t records = marking_count(&m.marking);
    marked_finish(&m);
    return driver_end(&d, records);
}
