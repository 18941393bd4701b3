/* SPDX-License-Identifier: MIT */
/* `idxstats`: how many records each reference has, mapped and unmapped: counted, or as the index of a BAM file says. */
#ifndef IDXSTATS_H
#define IDXSTATS_H

#include <stdbool.h>
#include "stats/counter.h"

struct idxstats_settings {
    bool as_index;               /* as from an index: records without reference all count as unmapped */
    bool any_order;              /* a reference may come back; else that is refused */
    const char *path;            /* of the input, for messages */
    sam_hdr_t *sam;              /* set by begin() */
};

/* The settings stay the caller's. */
struct counter idxstats_counter(struct idxstats_settings *settings);

/* Prints what the index says. */
void idxstats_print_index(const hts_idx_t *index, sam_hdr_t *sam, FILE *out);

#endif
