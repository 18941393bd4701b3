/* SPDX-License-Identifier: MIT */
/* A report's data about each input of a merge, and about the blocks copied from them (--copy-blocks). */
#ifndef REPORT_INPUT_H
#define REPORT_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct report_input {
    const char *name;
    uint64_t bytes;              /* as in the file or pipe; REPORT_UNKNOWN if not known, or if only regions are read */
    uint64_t records;
    uint64_t waits;              /* number of times that there was no work before its next records came ... */
    double waited;               /* ... and the seconds until they came */
};

struct report_inputs {
    const struct report_input *each;     /* owned by the caller */
    size_t n;                    /* 0: not a merge, and nothing is reported */
};

/* The blocks that --copy-blocks copied. */
struct report_copied {
    bool asked;                  /* copying was requested; otherwise nothing is reported */
    uint64_t blocks, bytes;      /* compressed blocks of the output that were copied from an input, and their bytes */
    const char *why;  /* why none could be copied; a sort then ran without copying. Owned by the caller; NULL: they
                       * could be */
};

#endif
