/* SPDX-License-Identifier: MIT */
/* The options of `samtools sormadup`. cli/sormadup_args.c fills them in; they do not change after that. */
#ifndef SORMADUP_OPTS_H
#define SORMADUP_OPTS_H

#include "fixmate/fixmate.h"
#include "markdup/markdup_opts.h"

struct sormadup_opts {
    struct engine_opts common;     /* options of the sort, and of all steps: by coordinate. The command line is that of
                                    * the last step */
    struct fixmate_rules fixmate;    /* without the lengths, which come from the header */
    struct markdup_opts markdup; /* its `common` is a copy of this one */
    bool collate;                /* always collates; false: only if a header states coordinate order */
    const char *cat_line;        /* command line of the step that joins several inputs; NULL: one input */
    const char *collate_line, *fixmate_line, *sort_line;     /* command lines of the steps before the last ... */
    const char *collated_line;   /* ... and that of fixmate if the input is collated */
};

#endif
