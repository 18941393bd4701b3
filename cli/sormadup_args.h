/* SPDX-License-Identifier: MIT */
/* Reads the command line of `samtools sormadup`. */
#ifndef SORMADUP_ARGS_H
#define SORMADUP_ARGS_H

#include "cli/engine_args.h"

struct sormadup_opts;

/* argv[0] is the program, argv[1] "sormadup". Whatever the result, call engine_args_free() afterwards. */
enum engine_args_result sormadup_args_parse(struct sormadup_opts *opts, int argc, char **argv);
void sormadup_args_usage(FILE *to);

#endif
