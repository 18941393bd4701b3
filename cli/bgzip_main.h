/* SPDX-License-Identifier: MIT */
/* `samtools-omp bgzip`, which is also `bgzip-omp`. */
#ifndef BGZIP_MAIN_H
#define BGZIP_MAIN_H

#include <stdbool.h>
#include <stdio.h>

/* Returns whether the program was called as bgzip. */
bool bgzip_main_is_name(const char *argv0);

/* argv[0] is the command. Returns the exit status. */
int bgzip_main(int argc, char **argv);

/* Prints the options for shell completion, like option_table_words(). */
void bgzip_main_words(FILE *to);

#endif
