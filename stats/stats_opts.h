/* SPDX-License-Identifier: MIT */
/* What the command lines of `samtools stats`, `flagstat` and `idxstats` ask for. cli/stats_args.c makes it; nothing
 * changes it afterwards but the counter, which learns the header. */
#ifndef STATS_OPTS_H
#define STATS_OPTS_H

#include "engine/engine_opts.h"
#include "stats/flagstat.h"
#include "stats/idxstats.h"

struct stats_opts {
    struct engine_opts common;   /* one input, and its index if it is named; no output */
    struct counter counter;      /* it refers to one of these: */
    struct flagstat_settings flagstat;
    struct idxstats_settings idxstats;
    bool from_index;             /* the index of BAM is asked, and records are counted if there is none */
    char *const *regions;        /* n_regions: only records in these are counted. 0: all are */
    size_t n_regions;
};

#endif
