/* SPDX-License-Identifier: MIT */
/* The inputs of a merge, with one header for all of them. */
#ifndef MERGE_INPUTS_H
#define MERGE_INPUTS_H

#include "read/input.h"

struct header_join;
struct merge_opts;

/* Zero-initialised: nothing is open. */
struct merge_inputs {
    struct inputs in;       /* its count of headers includes that of the output */
    struct header_join *join;    /* the inputs' remaps refer to it */
    sam_hdr_t *sam;              /* header of the output, without a @PG line of our own */
};

/* Opens the inputs and joins their headers. -1: failed, and the error is recorded in the latch; merge_inputs_close()
 * must still be called. */
int merge_inputs_open(struct merge_inputs *inputs, const struct merge_opts *opts, const struct memory_rings *rings,
                      const struct engine *engine);

/* Closes the inputs and frees the headers. Call it after the parallel region. */
void merge_inputs_close(struct merge_inputs *inputs);

#endif
