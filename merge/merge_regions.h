/* SPDX-License-Identifier: MIT */
/* The records of its inputs that a merge takes: those in a region (-R), or in the regions of a BED file (-L).
 * Serial. */
#ifndef MERGE_REGIONS_H
#define MERGE_REGIONS_H

#include <htslib/sam.h>
#include "bam/ref_regions.h"
#include "base/name_table.h"

struct latch;
struct merge_opts;
struct input;

/* A zero-initialised struct is closed. */
struct merge_regions {
    bool of_output;              /* references are those of the output; otherwise their numbers are those of `names` */
    struct name_table names;
    struct ref_regions list;
    struct latch *latch;
};

/* Returns whether the merge is limited to regions. */
bool merge_regions_wanted(const struct merge_opts *opts);

/* Reads the regions of the command line. joined: the output's header. -1: failed, and the error is recorded in the
 * latch; merge_regions_close() must still be called. */
int merge_regions_open(struct merge_regions *regions, const struct merge_opts *opts, const sam_hdr_t *joined,
                       struct latch *latch);
void merge_regions_close(struct merge_regions *regions);

/* Chooses the regions to read of the input, whose header was joined. In BED, the name * stands for the records without
 * reference, and . for all. index: see input_request. -1: failed, and the error is recorded in the latch. */
int merge_regions_choose(const struct merge_regions *regions, struct input *in, const char *index);

#endif
