/* SPDX-License-Identifier: MIT */
/* Reads the command line of `samtools sort`. */
#ifndef SORT_ARGS_H
#define SORT_ARGS_H

#include "cli/engine_args.h"

/* argv[0] is the program, argv[1] "sort". Whatever the result, call engine_args_free() afterwards. */
enum engine_args_result sort_args_parse(struct sort_opts *opts, int argc, char **argv);
void sort_args_usage(FILE *to);

#endif
