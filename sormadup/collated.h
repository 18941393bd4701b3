/* SPDX-License-Identifier: MIT */
/* The producer that groups records by name: a sort in the order of `collate`, whose merged records the next producer
 * reads.
 *
 *   inputs -> arenas -> sublists, runs -> ranges -> slices -> the next producer
 *                                         merged
 *                                         and copied
 *
 * The next sort has half of the memory left for arenas, and this one the other half: both hold records while the slices
 * are read. */
#ifndef COLLATED_H
#define COLLATED_H

#include "engine/engine_opts.h"
#include "sort/sorted.h"
#include "sormadup/sorted_slices.h"

struct engine;

/* Zero-initialised: nothing is open. */
struct collated {
    struct sorted sort;
    struct engine_opts opts;     /* options of this sort */
    struct sorted_slices merged;
};

struct collated_options {
    const struct engine_opts *behind;    /* options of the next sort; the next two fields are of that sort, too */
    const struct memory_rings *rings;
    struct output_use output;    /* memory of the output files */
    const char *command_line;    /* for the @PG line; NULL: none */
    const struct engine *engine;
    struct progress *progress;   /* NULL: not shown */
};

/* Returns the bytes that this producer needs beyond the plan of the next sort. behind, rings, in: those of that sort.
 * output: memory of the output files. */
size_t collated_memory(const struct engine_opts *behind, const struct memory_rings *rings, const struct inputs *in,
                       struct output_use output);

/* Takes ownership of the inputs, and replaces *in by an input that reads the grouped records. -1: the error is recorded
 * in the latch; collated_finish() must still be called. */
int collated_open(struct collated *collated, struct inputs *in, const struct collated_options *options);

/* Reads and sorts all records; afterwards the stream may be read. Does nothing if *collated is not open. -1: failed. */
int collated_read(struct collated *collated);

/* Closes it after the parallel region, when the slices are no longer used. */
void collated_finish(struct collated *collated, int n_threads);

#endif
