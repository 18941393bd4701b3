/* SPDX-License-Identifier: MIT */
#ifndef STATS_ARGS_H
#define STATS_ARGS_H

struct engine_args;
struct output_request;

/* Of a command that writes records: what is to be counted of them, in the same pass. The output's name and format are
 * settled. -1: a mistake, told. */
int stats_args_settle_counters(struct engine_args *args);

/* Gives back the settings of the counters. */
void stats_args_free(struct output_request *out);

#endif
