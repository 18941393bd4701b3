/* SPDX-License-Identifier: MIT */
/* Reads the command line of a command of the engine, and settles what its options mean together. */
#ifndef ENGINE_ARGS_H
#define ENGINE_ARGS_H

#include "cli/engine_options.h"

/* Reads the options and leaves the operands behind optind. argv[0] is the program, argv[1] the command. RUN: go on and
 * settle. Whatever the result, call engine_args_free() afterwards. */
enum engine_args_result engine_args_read(struct engine_args *args, const struct engine_command *command,
                                         struct engine_opts *opts, int argc, char **argv);
void engine_args_free(struct engine_opts *opts);

/* ---- what the options mean together, when all are read. -1: a mistake, told. ---- */

void engine_args_settle_order(struct engine_args *args);
/* The operands are one input and one output, which is settled as follows. */
int engine_args_settle_files(struct engine_args *args, int n, char **operands);
/* The output's name and that of its index, and format and level: by -O, else by the name, else BAM, as in samtools. */
int engine_args_settle_output(struct engine_args *args);
/* The index of --write-index, if there is to be one. The output is settled, and in an order that has an index. */
int engine_args_settle_index(const struct engine_args *args);
/* --total-memory, else -m for each thread, else what the environment says, else what is usual for each thread. */
int engine_args_settle_memory(struct engine_args *args);
/* Settles the memory of a command that keeps no records (MEMORY_AT_ONCE). The default is enough for the blocks and
 * chunks in flight. */
int engine_args_settle_memory_at_once(struct engine_args *args);
/* Adds a place for temporary files, if -T names none: TMPDIR with --tmpdir-env; else that of the environment, if it
 * names some; else beside the output; or, where no file can be made beside it, and where it is standard output or what
 * somebody has open (/dev/null, /dev/stdout, a shell's >(command)), those that begin with `elsewhere`. */
int engine_args_settle_temp(struct engine_args *args, const char *elsewhere);

/* The environment's folder for reports, if the command line wants none; and what reports tell. Call it last. */
void engine_args_settle_report(struct engine_opts *opts);

#endif
