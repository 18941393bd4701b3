/* SPDX-License-Identifier: MIT */
/* The options of `samtools stats`, `flagstat` and `idxstats`. cli/stats_args.c fills them in; nothing changes them
 * afterwards but the settings of the counter, which learn the header. */
#ifndef STATS_OPTS_H
#define STATS_OPTS_H

#include "engine/engine_opts.h"

struct stats_settings;

struct stats_opts {
    struct engine_opts common;   /* one input, and its index if it is named; one counter, and no other output */
    bool from_index;             /* the index of BAM is asked, and records are counted if there is none */
    struct stats_settings *stats;    /* of `stats`, which also get the regions; else NULL */
    char *const *regions;        /* n_regions: only records in these are counted. 0: all are */
    int n_regions;
};

#endif
