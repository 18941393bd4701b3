/* SPDX-License-Identifier: MIT */
/* A place for temporary files, as given by -T or the environment: a directory, or DIR/NAME. */
#ifndef TEMP_PREFIX_H
#define TEMP_PREFIX_H

#include <limits.h>

/* The text between the place and the suffix of each of its files: "/samtools-sort" after a directory, otherwise "". */
const char *temp_prefix_ending(const char *place);

/* Writes the directory of the files to dir. Returns dir. */
const char *temp_prefix_directory(const char *place, char dir[PATH_MAX]);

#endif
