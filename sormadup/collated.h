/* SPDX-License-Identifier: MIT */
/* The producer that groups records by name: a sort in the order of `collate`, whose merged records the next producer
 * reads.
 *
 *   inputs -> arenas -> sublists, runs -> ranges -> slices -> the consumer
 *                                         merged
 *                                         and copied
 *
 * The sort behind has half of what memory is left for arenas, and this one the other half: both hold records while the
 * slices are read. */
#ifndef COLLATED_H
#define COLLATED_H

#include "engine/engine_opts.h"
#include "sort/sorted.h"
#include "sormadup/sorted_stream.h"

/* All zeros: nothing is open. */
struct collated {
    struct sorted sort;
    struct engine_opts opts;     /* of this sort */
    struct sorted_stream merged;
};

struct collated_options {
    const struct engine_opts *behind;    /* of the sort behind, as the next two */
    const struct memory_rings *rings;
    struct output_use output;    /* all that is around it, but for this one */
    const char *command_line;    /* of the @PG line; NULL: none */
    struct latch *latch;
    struct clocks *clocks;
    struct progress *progress;   /* NULL: nobody looks */
};

/* Returns the bytes that this producer needs beyond the plan of the next sort. behind, rings, in: as that sort has
 * them. output: all that is around that sort, but for this producer. */
size_t collated_memory(const struct engine_opts *behind, const struct memory_rings *rings, const struct inputs *in,
                       struct output_use output);

/* Takes over the inputs, and puts its stream in their place. -1: the error is recorded in the latch; finish it all the
 * same. */
int collated_open(struct collated *collated, struct inputs *in, const struct collated_options *options);

/* Reads and sorts everything; afterwards the stream may be read. Does nothing if *collated is not open. -1: failed. */
int collated_read(struct collated *collated);

/* Closes it after the parallel region, when nobody looks at the slices any more. */
void collated_finish(struct collated *collated, int n_threads);

#endif
