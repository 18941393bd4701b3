/* SPDX-License-Identifier: MIT */
/* Reads the command line of `samtools sort`. */
#ifndef SORT_ARGS_H
#define SORT_ARGS_H

#include <stdio.h>
#include "base/sort_opts.h"

enum sort_args_result {
    SORT_ARGS_ERROR = -1,        /* the cause and, where it helps, the usage were printed to stderr */
    SORT_ARGS_RUN,
    SORT_ARGS_DONE,              /* help was printed, and that is all */
};

/* argv[0] is the program, argv[1] "sort". Whatever the result, call sort_args_free() afterwards. */
enum sort_args_result sort_args_parse(struct sort_opts *opts, int argc, char **argv);
void sort_args_free(struct sort_opts *opts);
void sort_args_usage(FILE *to);

#endif
