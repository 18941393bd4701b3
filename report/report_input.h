/* SPDX-License-Identifier: MIT */
/* What a report tells of each input of a merge, and of what was copied from them (--copy-blocks). */
#ifndef REPORT_INPUT_H
#define REPORT_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct report_input {
    const char *name;
    uint64_t bytes;              /* as in the file or pipe; REPORT_UNKNOWN, as where regions are read */
    uint64_t records;
    uint64_t waits;              /* how often there was nothing to do before its next records came ... */
    double waited;               /* ... and seconds from then until they came */
};

struct report_inputs {
    const struct report_input *each;     /* stays the caller's */
    size_t n;                    /* 0: it is no merge, and nothing is told */
};

/* The blocks that --copy-blocks copied. */
struct report_copied {
    bool asked;                  /* else nothing is told */
    uint64_t blocks, bytes;      /* of the output, compressed, that are those of an input */
    const char *why;             /* why a sort copied none, and ran as without; the caller's. NULL: it was a merge */
};

#endif
