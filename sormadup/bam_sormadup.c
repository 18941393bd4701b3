/* SPDX-License-Identifier: MIT */
/* The driver of `sormadup`: fixmate, sort and markdup as one. Its steps, each of which takes the records of the one
 * before it:
 *
 *   read      the inputs                      blocks, lines or containers (read/)
 *   collate   groups records by name          a sort of its own (collated.h); only if they are not grouped
 *   fixmate   fixes templates                 chunks, fixed by tasks (fixed_inputs.h)
 *   sort      by coordinate                   arenas, sublists, runs (sort/sorted.h); copied to slices
 *   markdup   marks duplicates                slices that wait for their sets (markdup/marking.h)
 *   write     the file, and its index         blocks (write/written.h)
 *
 * A sort gives its first record when it has read the last one. So the driver calls each sort to read, and the steps
 * before it run inside that call. sormadup.h opens the steps. */
#include "sormadup/bam_sormadup.h"
#include "bam_sort.h"
#include "base/engine.h"
#include "base/clocks.h"
#include "engine/driver.h"
#include "sormadup/sormadup.h"
#include "sormadup/sormadup_opts.h"

/* markdup is opened when the sort has read all records (sormadup_begin_marking()): only then is its memory free. */
static int open_all(struct sormadup *c)
{
    return sormadup_open_output(c) < 0 || sormadup_open_inputs(c) < 0 || sormadup_open_collated(c) < 0
        || sormadup_open_fixed(c) < 0 || sormadup_open_sort(c) < 0 || sormadup_prepare_output(c) < 0 ? -1 : 0;
}

static void work(void *sormadup)
{
    struct sormadup *c = sormadup;
    struct list_stream stream = marking_stream(&c->marking);
    if (collated_read(&c->collated) < 0 || bam_sort_read(&c->sorted) < 0 || orphans_end(c->orphans) < 0)
        return;
    clocks_phase(c->d->engine.clocks, PHASE_WRITE);
    if (sormadup_put_header(c) == 0 && sormadup_begin_marking(c) == 0)
        written_all(&c->d->out, &stream);
}

static void finish(struct sormadup *c, int n_threads)
{
    sorted_finish(&c->sorted, n_threads, c->d);  /* names the output */
    collated_finish(&c->collated, n_threads);
    marking_close(&c->marking);
    sorted_slices_close(&c->merged);
    fixed_inputs_close(&c->fixed);
    orphans_close(c->orphans);
    inputs_close(&c->in);
}

int bam_sormadup(const struct sormadup_opts *opts)
{
    struct latch latch = {0};
    struct driver d = {.engine.latch = &latch};
    struct sormadup c = {.opts = opts, .common = &opts->common, .d = &d, .sorted.engine = &d.engine};
    int n_threads = 1;
    if (driver_begin(&d, &opts->common) == 0 && open_all(&c) == 0)
        n_threads = driver_run(&d, &opts->common, &c.sorted.in, work, &c);
    uint64_t records = sorted_tally(&c.sorted).n;
    finish(&c, n_threads);
    return driver_end(&d, records);
}
