/* SPDX-License-Identifier: MIT */
/* Catches the output of a function. */
#ifndef UNIT_PRINTED_H
#define UNIT_PRINTED_H

#include <stdio.h>
#include "unit.h"

enum { MAX_PRINTED = 16384 };

/* Redirects the stream to a temporary file. Returns the old one, for unit_restore(). */
static inline int unit_redirect(FILE *stream, int *file)
{
    fflush(stream);
    int old = dup(fileno(stream));
    *file = unit_temp_file();
    dup2(*file, fileno(stream));
    return old;
}

/* text: the output in between. */
static inline void unit_restore(FILE *stream, int old, int file, char text[MAX_PRINTED])
{
    fflush(stream);
    dup2(old, fileno(stream));
    close(old);
    ssize_t n = pread(file, text, MAX_PRINTED - 1, 0);
    text[n > 0 ? n : 0] = 0;
    close(file);
}

#endif
