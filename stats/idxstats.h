/* SPDX-License-Identifier: MIT */
/* `idxstats` prints how many mapped and unmapped records each reference has. It counts them, or takes the numbers from
 * the index of a BAM file. */
#ifndef IDXSTATS_H
#define IDXSTATS_H

#include <stdbool.h>
#include "stats/counter.h"

struct idxstats_settings {
    bool as_index;               /* counts as an index does: all records without a reference are unmapped */
    bool custom_index;           /* -X: an operand names the index */
    bool any_order;              /* a reference may appear again; otherwise that is refused */
    const char *path;            /* path of the input, for messages */
    sam_hdr_t *sam;              /* set by begin() */
};

/* The settings stay the caller's. */
struct counter idxstats_counter(struct idxstats_settings *settings);

/* Prints the numbers from the index. */
void idxstats_print_index(const hts_idx_t *index, sam_hdr_t *sam, FILE *out);

#endif
