/* SPDX-License-Identifier: MIT */
/* The command line of each rank, and a check that all ranks were given the same. */
#ifndef RANK_OPTIONS_H
#define RANK_OPTIONS_H

#include "cli/command_args.h"
#include "mpi/mpi_team.h"

/* Every rank calls it, before anything else, with its own arguments. A difference is reported once, by the first rank
 * whose options differ from those of rank 0. Threads, memory, places for temporary files, --verbosity and reports may
 * differ. ENGINE_ARGS_RUN: all ranks are to sort, with these options. ENGINE_ARGS_DONE: all were asked for help or a
 * version, which rank 0 printed. ENGINE_ARGS_ERROR: refused, and the error was reported. Free the options in all
 * cases. */
enum engine_args_result rank_options_read(struct engine_opts *opts, const struct mpi_team *team,
                                          int argc, char **argv);

#endif
