/* SPDX-License-Identifier: MIT */
/* What `sormadup` is beside a sort: whether its records are collated before, and the memory of what is around the
 * sort. */
#ifndef SORMADUP_H
#define SORMADUP_H

#include "base/memory_shares.h"
#include "read/input.h"

struct sormadup_opts;

/* Whether records are collated: asked for, or the header of an input says that it is in coordinate order. -1: no
 * memory, and the error is recorded in the latch. */
int sormadup_collates(const struct sormadup_opts *opts, const struct inputs *in, struct latch *latch);

/* Bytes for who takes the records of the sort: to copy and to mark them, the least that works ... */
size_t sormadup_marking_least(int n_threads);

/* ... and what it gets in this plan, with which orphans are looked for before. */
size_t sormadup_marking(const struct memory_rings *rings);

/* The numbers that sormadup_overhead() adds up. */
struct sormadup_use {
    const struct engine_opts *opts;
    struct inputs in;       /* as they were opened; its pointers are not looked at */
    struct output_use output;    /* of the files */
    bool collates;
};

/* All bytes beside the sort and the files, with these rings: a memory_overhead_fn of a struct sormadup_use. */
size_t sormadup_overhead(const void *use, const struct memory_rings *rings);

#endif
