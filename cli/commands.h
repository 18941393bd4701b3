/* SPDX-License-Identifier: MIT */
/* The table of the commands that run on the engine, and what `samtools help` and `samtools --version` print. The help
 * lists these commands and those of the next samtools on PATH. */
#ifndef COMMANDS_H
#define COMMANDS_H

#include <stdio.h>

struct command;

/* Finds the command of that name among those that run on the engine. Returns NULL if there is none, or if name is NULL.
 * May be called before main(): it only uses libc functions that work that early. */
const struct command *commands_find(const char *name);

/* Returns our command whose name differs from the word by one typing error ("srt"); NULL: none. */
const char *commands_meant(const char *word);

/* Reads the command line and runs the command, or runs the next samtools on PATH if only that supports one of the
 * options. Returns the exit status. */
int commands_run(const struct command *command, int argc, char **argv);

/* Prints the command's help. */
void commands_usage(const struct command *command, FILE *to);

/* Prints the words for shell completion, like option_table_words(): the options of the command; NULL: the commands.
 * Prints nothing for other names. */
void commands_words(const char *name, FILE *to);

/* Prints the help. Runs the next samtools on PATH to get its list of commands; if there is none, prints how to install
 * it. */
void commands_print(FILE *to);

/* `samtools --version`: the first line is "samtools " and SAMTOOLS_VERSION. */
void commands_version(FILE *to);

/* `samtools --version-only`. */
void commands_version_only(FILE *to);

#endif
