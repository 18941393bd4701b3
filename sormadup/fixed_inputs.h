/* SPDX-License-Identifier: MIT */
/* The producer that makes records as `fixmate` writes them: of all inputs, one after the other, as one stream. A
 * template in which an input ends may go on in the next one. */
#ifndef FIXED_INPUTS_H
#define FIXED_INPUTS_H

#include "base/memory_shares.h"
#include "read/fixed_records.h"
#include "read/input.h"

struct fixed_inputs_options {
    const struct fixmate_rules *rules;   /* but for the lengths of references, which the header tells */
    fixed_orphans_fn *orphans;   /* as in fix_request, with its argument */
    void *orphans_arg;
    struct chunk_memory memory;
    struct latch *latch;
    struct clocks *clocks;
};

/* All zeros: nothing is open. */
struct fixed_inputs {
    struct fixed_inputs_options opt;
    struct inputs in;            /* what it reads */
    struct fix_request request;
    int64_t *lengths;            /* the request has these */
    struct fixed_records **each; /* in.n, of the inputs whose turn has come */
    size_t n_begun;
    uint64_t before;             /* bytes of the inputs before the one that is read */
};

/* Takes over the inputs, and puts its stream in their place. -1: out of memory, and the error is recorded in the latch;
 * close it anyway. */
int fixed_inputs_open(struct fixed_inputs *fixed, struct inputs *in, const struct fixed_inputs_options *options);

/* Call it after the parallel region. */
void fixed_inputs_close(struct fixed_inputs *fixed);

/* The function of its stream. Each record of the inputs is one of *given now, or was left out. */
int fixed_inputs_end(void *fixed, struct tally *given);

#endif
