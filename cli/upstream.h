/* SPDX-License-Identifier: MIT */
/* Runs the next samtools on PATH for the commands and options that are not ours. */
#ifndef UPSTREAM_H
#define UPSTREAM_H

#include <stdbool.h>
#include <stdio.h>

/* Replaces this process by $SAMTOOLS_UPSTREAM, or otherwise by the next `samtools` on PATH that is not this program.
 * argv is passed on unchanged, except that argv[0] becomes "samtools" if it is another name (samtools-omp). Returns
 * only if there is no such program: the exit status, after a message. */
int upstream_exec(char **argv);

/* Returns the path of that program, which the caller frees; NULL: none. */
char *upstream_find(void);

typedef bool upstream_read_fn(void *arg, FILE *from);

/* Starts the program at that path with argv and calls read with its standard output. It has no standard input and no
 * standard error. Returns the result of read; false if the program cannot be started. */
bool upstream_read(const char *path, char **argv, upstream_read_fn *read, void *arg);

/* Returns the version that the samtools at that path prints ("1.16.1"). The caller frees it. NULL: it prints none. */
char *upstream_version(const char *path);

/* `samtools-omp --env=SHELL`: prints the line for that shell ("": sh) that puts the folder of our `samtools` first on
 * PATH. name is argv[0]. Returns the exit status. Warns if other commands are run by a samtools whose version differs
 * from the one we replace. If the line cannot be made, prints `false` after a message, so that the script which
 * evaluates the output fails, too. */
int upstream_print_env(const char *name, const char *shell_name);

#endif
