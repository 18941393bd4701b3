/* SPDX-License-Identifier: MIT */
/* Reads the command line of `samtools collate`. */
#ifndef COLLATE_ARGS_H
#define COLLATE_ARGS_H

#include "cli/engine_args.h"

/* argv[0] is the program, argv[1] "collate". Whatever the result, call engine_args_free() afterwards. HAND_ON: -f or -r
 * was given. */
enum engine_args_result collate_args_parse(struct sort_opts *opts, int argc, char **argv);
void collate_args_usage(FILE *to);

#endif
