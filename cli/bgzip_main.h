/* SPDX-License-Identifier: MIT */
/* `samtools-omp bgzip`, which is `bgzip-omp` by its own name. */
#ifndef BGZIP_MAIN_H
#define BGZIP_MAIN_H

#include <stdbool.h>
#include "bgzip/bgzip_opts.h"

enum bgzip_args_result { BGZIP_ARGS_RUN, BGZIP_ARGS_DONE, BGZIP_ARGS_MISTAKE };

/* Whether the program was called as bgzip. */
bool bgzip_main_is_name(const char *argv0);

/* argv[0] is the command. DONE: help or the version was printed; MISTAKE: what is wrong was. */
enum bgzip_args_result bgzip_main_parse(struct bgzip_opts *opts, int argc, char **argv);

/* Returns the exit status. */
int bgzip_main(int argc, char **argv);

#endif
