/* SPDX-License-Identifier: MIT */
/* Reads the command line of an engine command, and settles the combination of its options. */
#ifndef ENGINE_ARGS_H
#define ENGINE_ARGS_H

#include "cli/engine_options.h"

/* Reads the options and sets optind to the first operand. argv[0] is the program, argv[1] the command. RUN: continue
 * and settle. Call engine_args_free() afterwards, for every result. */
enum engine_args_result engine_args_read(struct engine_args *args, const struct engine_command *command,
                                         struct engine_opts *opts, int argc, char **argv);
void engine_args_free(struct engine_opts *opts);

/* ---- Settle the options after all are read. -1: a mistake, reported. ---- */

/* Settles the order of the output from -n, -N, -t and similar options. Warns of a tag that no record can have. */
void engine_args_settle_order(struct engine_args *args);

/* Settles the operands, one input and one output. It settles the output as the next function does. */
int engine_args_settle_files(struct engine_args *args, int n, char **operands);
/* Settles the names of the output and of its index, the format and the level. The format is that of -O, otherwise that
 * of the name's ending, otherwise BAM, as in samtools. */
int engine_args_settle_output(struct engine_args *args);
/* Settles the index of --write-index, if one is requested. The output must be settled, and in an order that allows an
 * index. */
int engine_args_settle_index(const struct engine_args *args);
/* Settles the memory: --total-memory, otherwise -m for each thread, otherwise the environment, otherwise the default
 * for each thread. */
int engine_args_settle_memory(struct engine_args *args);
/* Settles the memory of a command that keeps no records (MEMORY_AT_ONCE). The default is enough for the blocks and
 * chunks in flight. */
int engine_args_settle_memory_at_once(struct engine_args *args);
/* Adds a place for temporary files if -T names none: TMPDIR with --tmpdir-env; otherwise the place in the environment;
 * otherwise beside the output; or, if no file can be made beside the output, or the output is standard output or
 * already open (/dev/null, /dev/stdout, a shell's >(command)), names that begin with `elsewhere`. */
int engine_args_settle_temp(struct engine_args *args, const char *elsewhere);

/* Settles the folder for reports from the environment, if the command line requests no report; and the contents of
 * reports. Call it last. */
void engine_args_settle_report(struct engine_opts *opts);

#endif
