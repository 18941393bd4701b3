/* SPDX-License-Identifier: MIT */
/* Reads the command line of `samtools fixmate`. */
#ifndef FIXMATE_ARGS_H
#define FIXMATE_ARGS_H

#include "cli/engine_args.h"

struct fixmate_opts;

/* argv[0] is the program, argv[1] "fixmate". is_step: of sormadup, with options of its own only. Whatever the result,
 * call engine_args_free() afterwards. */
enum engine_args_result fixmate_args_parse(struct fixmate_opts *opts, bool is_step, int argc, char **argv);
void fixmate_args_usage(FILE *to);

#endif
