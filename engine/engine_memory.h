/* SPDX-License-Identifier: MIT */
/* The memory plan of a sort or a merge with these options. The sort takes this memory, and --plan reports it. */
#ifndef ENGINE_MEMORY_H
#define ENGINE_MEMORY_H

#include "base/memory_shares.h"
#include "read/input.h"

struct engine_opts;

/* The first part of the plan, made before any file is opened. writes: there will be an output. If not, no codecs are
 * counted for it, but blocks are counted, for the consumer of the records. Call it once: see limits_memory(). */
struct memory_rings engine_memory_rings(const struct engine_opts *opts, const struct input_request *in,
                                      enum memory_reads reads, bool writes);

/* The reason why blocks of these inputs (--copy-blocks) cannot be copied to this output; NULL if they can. A constant
 * string. */
const char *engine_memory_copies_none(const struct engine_opts *opts);

/* Returns how the inputs are opened. */
struct inputs_options engine_memory_inputs(const struct engine_opts *opts, const struct input_request *in,
                                              const struct memory_rings *rings, const struct engine *engine);

/* The second part of the plan, made when the headers are read. output: memory for the output and for the order. -1: the
 * plan takes more than --total-memory; the error, with the least amount that is enough, is recorded in the latch. */
int engine_memory_plan(struct memory_plan *plan, const struct memory_rings *rings, const struct engine_opts *opts,
                     const struct inputs *inputs, struct output_use output, struct latch *latch);

/* Makes the same plan, but does not fail if it takes more than --total-memory. */
struct memory_plan engine_memory_plan_any(const struct memory_rings *rings, const struct engine_opts *opts,
                                        const struct inputs *inputs, struct output_use output);

#endif
