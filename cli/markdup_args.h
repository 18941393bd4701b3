/* SPDX-License-Identifier: MIT */
/* Reads the command line of `samtools markdup`. */
#ifndef MARKDUP_ARGS_H
#define MARKDUP_ARGS_H

#include "cli/engine_args.h"

struct markdup_opts;

/* argv[0] is the program, argv[1] "markdup". is_step: of sormadup, with options of its own only. Whatever the result,
 * call engine_args_free() afterwards. */
enum engine_args_result markdup_args_parse(struct markdup_opts *opts, bool is_step, int argc, char **argv);
void markdup_args_usage(FILE *to);

#endif
