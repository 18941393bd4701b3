/* SPDX-License-Identifier: MIT */
/* A place for temporary files, as -T and the environment name it: a directory, or DIR/NAME. */
#ifndef TEMP_PREFIX_H
#define TEMP_PREFIX_H

#include <limits.h>

/* What follows the place in the paths of its files, before what each of them adds: "/samtools-sort" behind a directory,
 * else "". */
const char *temp_prefix_ending(const char *place);

/* Writes the directory that the files are in to dir. Returns dir. */
const char *temp_prefix_directory(const char *place, char dir[PATH_MAX]);

#endif
