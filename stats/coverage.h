/* SPDX-License-Identifier: MIT */
/* `coverage` prints for each reference how many reads it has, how much of it they cover, and how well. */
#ifndef COVERAGE_H
#define COVERAGE_H

#include "stats/counter.h"

struct coverage_settings {
    uint32_t required, filtered; /* flags: only records with one of these count (0: all), and none with one of those */
    int min_mapq, min_quality;   /* least MAPQ of a record, and least quality of a base */
    int min_length;              /* bases of a read according to its CIGAR */
    int depth;                   /* reads that are kept at a time (coverage_whole.h); 0: all */
    bool no_quals;               /* each quality counts as 255: without -Q, samtools does not read those of CRAM */
    bool no_header;              /* no line with the names of columns */
    sam_hdr_t *sam;              /* set by begin() */
};

struct coverage_settings coverage_settings_default(void);

/* The settings stay the caller's. The records must be sorted by coordinate. */
struct counter coverage_counter(struct coverage_settings *settings);

#endif
