/* SPDX-License-Identifier: MIT */
/* The compression ratios of a sample's records: as blocks of the output, and as temporary data. */
#ifndef SAMPLE_RATIOS_H
#define SAMPLE_RATIOS_H

#include <stdbool.h>
#include <htslib/sam.h>

struct input_sample;
struct engine_opts;

/* Compressed bytes per byte of records; 0: not measured. */
struct sample_ratios {
    double deflated;             /* ratio of the output, if it is BAM */
    double packed;               /* ratio of temporary files, if there are any */
};

/* Sorts, deflates and, if the sort spills, packs the records. sam: the header of the output. The sample must not be
 * empty. -1: out of memory. */
int sample_ratios_measure(struct sample_ratios *ratios, const struct input_sample *sample,
                          const struct engine_opts *opts, sam_hdr_t *sam, bool spills);

#endif
