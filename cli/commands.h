/* SPDX-License-Identifier: MIT */
/* The commands that run on the engine, in one table; `samtools help`: these and those of the samtools behind us;
 * `samtools --version`. */
#ifndef COMMANDS_H
#define COMMANDS_H

#include <stdio.h>

struct command;

/* Finds the command of that name among those that run on the engine. Returns NULL if there is none, or if name is NULL.
 * May be called before main(): it uses only what libc offers that early. */
const struct command *commands_find(const char *name);

/* The command of ours that a word with one wrong letter means ("srt"); NULL: none. */
const char *commands_meant(const char *word);

/* Reads the command line and runs the command, or hands it on to the samtools behind us if that alone serves an option
 * in it. Returns the exit status. */
int commands_run(const struct command *command, int argc, char **argv);

void commands_usage(const struct command *command, FILE *to);

/* What completion offers, as option_table_words() has it: the options of the command; NULL: the commands. Prints
 * nothing for other names. */
void commands_words(const char *name, FILE *to);

/* Runs the samtools behind us to learn its commands. Where there is none, says what to do about it. */
void commands_print(FILE *to);

/* `samtools --version`: the first line is "samtools " and SAMTOOLS_VERSION. */
void commands_version(FILE *to);

/* `samtools --version-only`. */
void commands_version_only(FILE *to);

#endif
