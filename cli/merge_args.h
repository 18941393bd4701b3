/* SPDX-License-Identifier: MIT */
/* Reads the command line of `samtools merge`. */
#ifndef MERGE_ARGS_H
#define MERGE_ARGS_H

#include "cli/engine_args.h"
#include "plan/merge_opts.h"

/* argv[0] is the program, argv[1] "merge". Whatever the result, call engine_args_free(&opts->common) afterwards. */
enum engine_args_result merge_args_parse(struct merge_opts *opts, int argc, char **argv);
void merge_args_usage(FILE *to);

#endif
