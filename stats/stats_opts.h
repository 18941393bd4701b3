/* SPDX-License-Identifier: MIT */
/* The options of `samtools stats`, `flagstat`, `idxstats` and `coverage`. cli/stats_args.c fills them in. Afterwards
 * only the settings of the counter change, when it begins. The options must not be copied: their counter refers to its
 * settings. */
#ifndef STATS_OPTS_H
#define STATS_OPTS_H

#include "engine/engine_opts.h"
#include "stats/coverage.h"
#include "stats/flagstat.h"
#include "stats/idxstats.h"
#include "stats/stats_settings.h"

struct stats_opts {
    struct engine_opts common;   /* one input, and its index if it is named; one counter, and no other output */
    bool from_index;             /* prints the numbers from the index of BAM; records are counted if there is none */
    union {                      /* the settings of the command's counter */
        struct stats_settings stats;
        struct flagstat_settings flagstat;
        struct idxstats_settings idxstats;
        struct coverage_settings coverage;
    };
    char *const *regions;        /* n_regions of them: only records in these are counted. 0: all records are */
    int n_regions;
};

#endif
