/* SPDX-License-Identifier: MIT */
/* The options of `samtools markdup`. cli/markdup_args.c fills them in; they do not change after that. */
#ifndef MARKDUP_OPTS_H
#define MARKDUP_OPTS_H

#include "markdup/dup_key.h"
#include "engine/engine_opts.h"

struct markdup_opts {
    struct engine_opts common;     /* one input; temporary files hold waiting records that do not fit into memory */
    int64_t window;              /* -l: length of the window, at least 0 */
    enum dup_mode mode;          /* -m */
    bool remove;                 /* -r: duplicates are not written */
    bool others;  /* -S: unmapped, secondary and supplementary records of a duplicate are duplicates, too */
    bool clear;                  /* -c: flags and tags of an earlier run are removed */
    bool originals;              /* -t: duplicates name their original in do */
    bool counts;                 /* --duplicate-count: other records state in dc how many templates they stand for */
    bool pass;                   /* the chain pass; --no-multi-dup clears it */
    bool include_fails;          /* --include-fails: records that failed quality control take part */
    bool use_read_groups;        /* --use-read-groups: only records of one group are duplicates of each other */
    bool move_umi;               /* --move-umi-to-tag; then barcode_regex is given */
    char umi_separator;          /* --umi-separator: removed with it; 0: none */
    int distance;                /* -d: dt is set; 0: not given */
    const char *read_coords;     /* --read-coords: a valid expression; NULL: by colons */
    const char *coords_order;    /* --coords-order, a valid one; NULL: txy, or no read_coords */
    char barcode_tag[2];         /* --barcode-tag; {0}: none */
    const char *barcode_regex;   /* value of --barcode-name or --barcode-rgx, a valid expression; NULL: none */
    unsigned barcode_group;      /* number of its group that is the barcode */
    bool stats, json;            /* -s, --json: statistics are written, as text or as JSON; to standard error if
                                  * common.statistics is NULL */
};

#endif
