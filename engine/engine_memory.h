/* SPDX-License-Identifier: MIT */
/* The memory plan of a sort or a merge with these options: what the sort takes, and what --plan tells. */
#ifndef ENGINE_MEMORY_H
#define ENGINE_MEMORY_H

#include "base/memory_shares.h"
#include "read/input.h"

struct engine_opts;

/* The first part, before any file is opened. writes: there will be an output; else no codecs are counted for it, but
 * blocks are, for who takes the records. Call it once: see limits_memory(). */
struct memory_rings engine_memory_rings(const struct engine_opts *opts, const struct input_request *in,
                                      enum memory_reads reads, bool writes);

/* How the inputs are opened. */
struct inputs_options engine_memory_inputs(const struct engine_opts *opts, const struct input_request *in,
                                              const struct memory_rings *rings, struct latch *latch,
                                              struct clocks *clocks);

/* The second part: the headers are read. output: of the output, and of what the order needs.
 * -1: it takes more than --total-memory; the error, with the least that does, is recorded in the latch. */
int engine_memory_plan(struct memory_plan *plan, const struct memory_rings *rings, const struct engine_opts *opts,
                     const struct inputs *inputs, struct output_use output, struct latch *latch);

/* The same, and more is no error. */
struct memory_plan engine_memory_plan_any(const struct memory_rings *rings, const struct engine_opts *opts,
                                        const struct inputs *inputs, struct output_use output);

#endif
