/* SPDX-License-Identifier: MIT */
/* What the command line of `samtools sormadup` asks for. cli/sormadup_args.c makes it; nothing changes it
 * afterwards. */
#ifndef SORMADUP_OPTS_H
#define SORMADUP_OPTS_H

#include "fixmate/fixmate.h"
#include "markdup/markdup_opts.h"

struct sormadup_opts {
    struct engine_opts common;     /* of the sort, and of all: by coordinate. The command line is that of the last
                                      step */
    struct fixmate_rules fixmate;    /* but the lengths, which the header tells */
    struct markdup_opts markdup; /* its `common` is a copy of this one */
    bool collate;                /* in any case; else where the header says that the order is another one */
    const char *cat_line;        /* command line of what joins several inputs; NULL: there is one */
    const char *collate_line, *fixmate_line, *sort_line;     /* command lines of the steps before ... */
    const char *collated_line;   /* ... and that of fixmate if the input is collated */
};

#endif
