/* SPDX-License-Identifier: MIT */
#include "bam/bam_header.h"
#include "base/latch.h"
#include "sormadup/collated.h"
#include "markdup/marked_flow.h"
#include "sormadup/sormadup.h"
#include "sormadup/sormadup_opts.h"
#include "engine/engine_memory.h"
#include "sormadup/sorted_stream.h"

int sormadup_collates(const struct sormadup_opts *opts, const struct inputs *in, struct latch *latch)
{
    int collates = opts->collate;
    for (size_t i = 0; i < in->n && collates == 0; i++)
        collates = bam_header_says(in->each[i].header.sam, "coordinate");
    return collates < 0 ? latch_fail(latch, "out of memory for the header") : collates;
}

size_t sormadup_marking_least(int n_threads)
{
    return sorted_stream_memory(n_threads) + marked_flow_memory(n_threads, SORTED_SLICE);
}

size_t sormadup_marking(const struct memory_rings *rings)
{
    enum { SHARE = 6 };  /* one byte in this many is for consumers that take ownership of the records */
    size_t share = (size_t)(rings->job.all / SHARE), least = sormadup_marking_least(rings->job.n_threads);
    return share > least ? share : least;
}

size_t sormadup_overhead(const void *arg, const struct memory_rings *rings)
{
    const struct sormadup_use *use = arg;
    struct output_use output = use->output;
    size_t marking = sormadup_marking(rings);
    output.overhead += marking;
    return marking + (use->collates ? collated_memory(use->opts, rings, &use->in, output) : 0);
}
