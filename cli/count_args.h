/* SPDX-License-Identifier: MIT */
/* The counters of a command line: those of stats, flagstat, idxstats and coverage, and those that other commands run in
 * the same pass (--stats, --flagstat, ...). */
#ifndef COUNT_ARGS_H
#define COUNT_ARGS_H

#include "write/output_request.h"

struct engine_args;

/* Adds a counter that writes to the file. NULL: standard output, for a command that writes nothing else. */
void count_args_add(struct output_request *out, const char *file, struct counter counter);

/* Settles the counters of a command that writes records. The output's name and format must be settled. -1: a mistake,
 * which is reported. */
int count_args_settle(struct engine_args *args);

void count_args_free(struct output_request *out);

#endif
