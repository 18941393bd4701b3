/* SPDX-License-Identifier: MIT */
/* The producer that makes records as `fixmate` writes them: all inputs, one after another, as one stream. A template at
 * the end of an input may continue in the next one. */
#ifndef FIXED_INPUTS_H
#define FIXED_INPUTS_H

#include "base/memory_shares.h"
#include "read/fixed_records.h"
#include "read/input.h"

struct engine;

struct fixed_inputs_options {
    const struct fixmate_rules *rules;   /* without the lengths of references, which come from the header */
    fixed_orphans_fn *orphans;   /* as in fix_request, with its argument */
    void *orphans_arg;
    struct chunk_memory memory;
    const struct engine *engine;
};

/* Zero-initialised: nothing is open. */
struct fixed_inputs {
    struct fixed_inputs_options opt;
    struct inputs in;            /* what it reads */
    struct fix_request request;
    int64_t *lengths;            /* the request has these */
    struct fixed_records **each; /* records of the inputs whose turn has come */
    size_t n_begun;
    uint64_t before;             /* bytes of the inputs before the current one */
};

/* Takes over the inputs, and replaces them by its stream. -1: out of memory, and the error is recorded in the latch;
 * fixed_inputs_close() must still be called. */
int fixed_inputs_open(struct fixed_inputs *fixed, struct inputs *in, const struct fixed_inputs_options *options);

/* Call it after the parallel region. */
void fixed_inputs_close(struct fixed_inputs *fixed);

#endif
