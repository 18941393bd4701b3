/* SPDX-License-Identifier: MIT */
/* Handing a command to the samtools we stand in front of. */
#ifndef UPSTREAM_H
#define UPSTREAM_H

#include <stdbool.h>
#include <stdio.h>

/* Replaces this process by $SAMTOOLS_UPSTREAM, or else by the next `samtools`
 * on PATH that is not this program. argv goes on as it is, but argv[0] is
 * "samtools" if it is another name (samtools-omp). Returns the exit status,
 * after a message, only when there is none. */
int upstream_exec(char **argv);

/* The path of that program, to be freed; NULL: there is none. */
char *upstream_find(void);

typedef bool upstream_read_fn(void *arg, FILE *from);

/* Starts the program at that path with argv and calls read with what it writes to standard output. It has no standard
 * input and no standard error. Returns what read returns; false if the program cannot be started. */
bool upstream_read(const char *path, char **argv, upstream_read_fn *read, void *arg);

/* What the samtools at that path says that its version is ("1.16.1"), to be freed. NULL: it does not say. */
char *upstream_version(const char *path);

/* `samtools-omp --env=SHELL`: prints the line for that shell ("": sh) that puts the folder of our `samtools` first on
 * PATH. name is argv[0]. Returns the exit status. Warns if other commands are run by
 * a samtools of another version than ours stands for. If the line cannot be, after a message: prints `false`, so that
 * who evaluates the output fails, too. */
int upstream_print_env(const char *name, const char *shell_name);

#endif
