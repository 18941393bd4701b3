/* SPDX-License-Identifier: MIT */
/* A sort in the order of `collate` whose records another sort reads, in the same process: so these may come in any
 * order.
 *
 *   in.bam -> arenas -> sublists, runs -> ranges -> slices -> the sort behind
 *                                         merged
 *                                         and copied
 *
 * The sort behind has opened the input, hands it over, and gets the slices in its place. Each has half of what
 * memory is left for arenas, for both hold records while the slices are read. */
#ifndef COLLATED_H
#define COLLATED_H

#include "engine/engine_opts.h"
#include "sort/sorted.h"
#include "sormadup/sorted_source.h"
#include "read/input_part.h"

/* All zeros: nothing is open. */
struct collated {
    struct sorted *behind;       /* the sort that reads it; NULL: nobody does */
    struct sorted sort;
    struct engine_opts opts;       /* of this sort */
    struct input_part *whole, part;  /* its inputs; the one of the sort behind */
    struct sorted_source source;
};

/* Bytes that it takes beside what the plan of the sort behind counts, which has these options and rings, has opened the
 * inputs, and has `output` beside itself but for this sort. */
size_t collated_memory(const struct engine_opts *behind, const struct memory_rings *rings, const struct inputs *in,
                       struct output_use output);

/* Takes over the input of `behind`, which is opening, and puts the slices in its place. beside: bytes of all that is
 * around the sort behind, but for this one. command_line: of the @PG line; NULL: none. -1: the error is recorded in the
 * latch of `behind`; finish and close it all the same. */
int collated_open(struct collated *collated, struct sorted *behind, size_t beside, const char *command_line);

/* The error of this sort is also that of the one behind, if it has none. Always returns -1. */
int collated_stop(const struct collated *collated);

/* Ends the sort, as sorted_finish(), before the one behind is finished. */
void collated_finish(struct collated *collated, int n_threads);

/* Call it when nobody looks at the slices any more. */
void collated_close(struct collated *collated);

#endif
