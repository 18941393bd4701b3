/* SPDX-License-Identifier: MIT */
/* The steps of `sormadup`. The driver (bam_sormadup.c) says in which order they are opened. */
#ifndef SORMADUP_H
#define SORMADUP_H

#include "base/memory_shares.h"
#include "markdup/marking.h"
#include "read/input.h"
#include "sormadup/collated.h"
#include "sormadup/fixed_inputs.h"
#include "sormadup/orphans.h"
#include "sormadup/sorted_slices.h"

struct driver;
struct sormadup_opts;

/* The numbers that sormadup_overhead() adds up. */
struct sormadup_use {
    const struct engine_opts *opts;
    struct inputs in;            /* as they were opened; its pointers are not used */
    struct output_use output;    /* memory of the files */
    bool collates;
};

struct sormadup {
    const struct sormadup_opts *opts;
    const struct engine_opts *common;    /* options of all steps */
    struct driver *d;            /* has the output */
    struct memory_rings rings;
    struct sormadup_use use;     /* set when the inputs are open */
    int held;                    /* references whose full length the output must hold: inputs_held() */
    struct inputs in;            /* what the next step reads; a step that is opened puts its own stream here */
    struct collated collated;
    struct fixed_inputs fixed;
    struct orphans *orphans;     /* hashes of reads whose mate is not beside them. If both reads of a pair are
                                  * there, the input is not grouped */
    struct sorted sorted;
    struct sorted_slices merged;
    struct record_stream in_order;   /* the records of `merged` */
    struct marking marking;
};

/* Each of these opens a step, with its share of the memory, and connects it with the one before it. -1: failed, and the
 * error is recorded in the latch. */
int sormadup_open_output(struct sormadup *sormadup);
int sormadup_open_inputs(struct sormadup *sormadup);
int sormadup_open_collated(struct sormadup *sormadup);   /* opens nothing if records are not collated */
int sormadup_open_fixed(struct sormadup *sormadup);
int sormadup_open_sort(struct sormadup *sormadup);
int sormadup_prepare_output(struct sormadup *sormadup);

/* Call both on the main thread of the team, when the sort has read all records. -1: failed, and the error is recorded
 * in the latch. */
int sormadup_put_header(struct sormadup *sormadup);
int sormadup_begin_marking(struct sormadup *sormadup);

/* Returns whether records are collated: on request, or if the header of an input states coordinate order. -1: out of
 * memory, and the error is recorded in the latch. */
int sormadup_collates(const struct sormadup_opts *opts, const struct inputs *in, struct latch *latch);

/* All bytes besides the sort and the files, with these rings: a memory_overhead_fn of a struct sormadup_use. */
size_t sormadup_overhead(const void *use, const struct memory_rings *rings);

#endif
