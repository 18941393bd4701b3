/* SPDX-License-Identifier: MIT */
/* The parts of `sormadup` besides the sort: whether its records are collated first, and the memory of the producers
 * around the sort. */
#ifndef SORMADUP_H
#define SORMADUP_H

#include "base/memory_shares.h"
#include "read/input.h"

struct sormadup_opts;

/* Returns whether records are collated: on request, or if the header of an input states coordinate order. -1: out of
 * memory, and the error is recorded in the latch. */
int sormadup_collates(const struct sormadup_opts *opts, const struct inputs *in, struct latch *latch);

/* The numbers that sormadup_overhead() adds up. */
struct sormadup_use {
    const struct engine_opts *opts;
    struct inputs in;       /* as they were opened; its pointers are not used */
    struct output_use output;    /* of the files */
    bool collates;
};

/* All bytes besides the sort and the files, with these rings: a memory_overhead_fn of a struct sormadup_use. */
size_t sormadup_overhead(const void *use, const struct memory_rings *rings);

#endif
