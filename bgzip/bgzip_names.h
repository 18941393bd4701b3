/* SPDX-License-Identifier: MIT */
/* Which file bgzip writes for which it reads. */
#ifndef BGZIP_NAMES_H
#define BGZIP_NAMES_H

#include <stdbool.h>

struct bgzip_opts;

/* The names of one file's work. They are the struct's own; freed by bgzip_names_free(). */
struct bgzip_names {
    char *out;                   /* "-": standard output; NULL: nothing is written */
    char *index;                 /* the index that is read or written; NULL: none */
};

/* What htslib's bgzip 1.24 ends with if it may not write a file, and nothing else failed. */
enum { BGZIP_DECLINED = 2 };

/* Finds the names for an input; "-" is standard input. Returns 0, or the reason is printed: -1, there are none, or
 * BGZIP_DECLINED, the ending of the input is unknown and there is no -f. */
int bgzip_names_find(struct bgzip_names *names, const struct bgzip_opts *opts, const char *in);
void bgzip_names_free(struct bgzip_names *names);

/* Whether the output may be written: it is not there, or -f or the user, who is asked on a terminal, says so. False:
 * the reason is printed. */
bool bgzip_names_may_write(const struct bgzip_names *names, const struct bgzip_opts *opts, const char *in);

/* Whether the input goes when its output is whole: a regular file does. A link (/dev/stdin is one) and a pipe stay. */
bool bgzip_names_removes(const struct bgzip_names *names, const struct bgzip_opts *opts, const char *in);

#endif
