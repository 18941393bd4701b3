/* SPDX-License-Identifier: MIT */
/* The options of `samtools stats`, `flagstat`, `idxstats` and `coverage`. cli/stats_args.c fills them in. Afterwards
 * only the settings of the counter change, when they get the header. */
#ifndef STATS_OPTS_H
#define STATS_OPTS_H

#include "engine/engine_opts.h"

struct stats_settings;

struct stats_opts {
    struct engine_opts common;   /* one input, and its index if it is named; one counter, and no other output */
    bool from_index;             /* prints the numbers from the index of BAM; records are counted if there is none */
    struct stats_settings *stats;    /* settings of `stats`; they receive the regions, too. NULL for other commands */
    char *const *regions;        /* n_regions of them: only records in these are counted. 0: all records are */
    int n_regions;
};

#endif
