/* SPDX-License-Identifier: MIT */
#include "bam/bam_header.h"
#include "base/latch.h"
#include "sormadup/collated.h"
#include "sormadup/sormadup.h"
#include "sormadup/sormadup_memory.h"
#include "sormadup/sormadup_opts.h"

int sormadup_collates(const struct sormadup_opts *opts, const struct inputs *in, struct latch *latch)
{
    int collates = opts->collate;
    for (size_t i = 0; i < in->n && collates == 0; i++)
        collates = bam_header_says(in->each[i].header.sam, "coordinate");
    return collates < 0 ? latch_fail(latch, "out of memory for the header") : collates;
}

size_t sormadup_overhead(const void *arg, const struct memory_rings *rings)
{
    const struct sormadup_use *use = arg;
    return sormadup_memory_marking(rings)
         + (use->collates ? collated_memory(use->opts, rings, &use->in, use->output) : 0);
}
