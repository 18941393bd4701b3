/* SPDX-License-Identifier: MIT */
/* The files that bgzip writes for each file that it reads. */
#ifndef BGZIP_NAMES_H
#define BGZIP_NAMES_H

#include <stdbool.h>

struct bgzip_opts;

/* The names of the files of one job, owned by the struct; bgzip_names_free() frees them. */
struct bgzip_names {
    char *out;                   /* "-": standard output; NULL: nothing is written */
    char *index;                 /* the index that is read or written; NULL: none */
};

/* Exit status of htslib's bgzip 1.24 if it may not write a file and nothing else failed. */
enum { BGZIP_DECLINED = 2 };

/* Finds the names for an input; "-" is standard input. Returns 0. On a mistake it prints a message and returns -1, or
 * BGZIP_DECLINED if the extension of the input is unknown and -f is not given. */
int bgzip_names_find(struct bgzip_names *names, const struct bgzip_opts *opts, const char *in);
void bgzip_names_free(struct bgzip_names *names);

/* Returns whether the output may be written: it does not exist, or -f is given, or the user allows it when asked on a
 * terminal. False: the reason was printed. */
bool bgzip_names_may_write(const struct bgzip_names *names, const struct bgzip_opts *opts, const char *in);

/* Returns whether the input is removed when its output is complete: a regular file is. A link (such as /dev/stdin) and
 * a pipe stay. */
bool bgzip_names_removes(const struct bgzip_names *names, const struct bgzip_opts *opts, const char *in);

#endif
