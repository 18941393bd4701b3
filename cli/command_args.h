/* SPDX-License-Identifier: MIT */
/* The command lines of the commands that run on the engine; each is parsed in its own file, such as cli/sort_args.c. */
#ifndef COMMAND_ARGS_H
#define COMMAND_ARGS_H

#include "cli/engine_args.h"
#include "cli/stats_options.h"

struct fixmate_opts;
struct markdup_opts;
struct merge_opts;
struct sormadup_opts;
struct stats_opts;

/* argv[0] is the program, argv[1] the command. Call engine_args_free() afterwards, for every result, to free what all
 * commands share. is_step: the command is a step of sormadup, and accepts only its own options. */
enum engine_args_result sort_args_parse(struct engine_opts *opts, int argc, char **argv);
enum engine_args_result collate_args_parse(struct engine_opts *opts, int argc, char **argv);
enum engine_args_result merge_args_parse(struct merge_opts *opts, int argc, char **argv);
enum engine_args_result fixmate_args_parse(struct fixmate_opts *opts, bool is_step, int argc, char **argv);
enum engine_args_result markdup_args_parse(struct markdup_opts *opts, bool is_step, int argc, char **argv);
enum engine_args_result sormadup_args_parse(struct sormadup_opts *opts, int argc, char **argv);

extern const struct engine_command sort_command, collate_command, merge_command, fixmate_command, markdup_command,
    sormadup_command;

#define COUNTER_ARGS(name) \
    enum engine_args_result name##_args_parse(struct stats_opts *opts, int argc, char **argv); \
    extern const struct engine_command name##_command;
COUNTER_LIST(COUNTER_ARGS)

#endif
