/* SPDX-License-Identifier: MIT */
/* The options of `samtools merge`. cli/merge_args.c fills them in; they do not change after that. */
#ifndef MERGE_OPTS_H
#define MERGE_OPTS_H

#include "engine/engine_opts.h"

struct merge_opts {
    /* Records of an earlier input come before records that tie with them. A merge has no temporary files;
     * limits_memory() gives its total memory. */
    struct engine_opts common;
    const char *header;          /* -h: its header is joined before those of the inputs; "-": standard input; NULL:
                                  * none */
    const char *region, *bed;    /* -R, -L: only records in these regions; at most one of them. NULL: not given */
    bool join_groups;            /* -c: @RG lines with the same ID become one line */
    bool join_programs;          /* -p: @PG lines with the same ID become one line */
    bool groups_by_file;         /* -r: an input's name is the read group of its records */
    uint32_t seed;               /* -s: seed for the suffix of an ID that another input has */
    bool sorts;                  /* `sort --copy-blocks`: the header is the one that the sort would write, and the merge
                                  * gives up if it cannot replace the sort (merged.h) */
};

#endif
