/* SPDX-License-Identifier: MIT */
/* Where a file lies: the file system below its path, by name. Serial. */
#ifndef REPORT_PLACE_H
#define REPORT_PLACE_H

#include <stdint.h>

enum { REPORT_PLACE_NAME = 32 };

struct report_place {
    char file_system[REPORT_PLACE_NAME];   /* "ext4", or "device"; "": not known, or it is a pipe */
    uint64_t bytes;              /* UINT64_MAX: not known */
};

/* Looks at a file or folder; "-" stands for the descriptor. Only regular files have a size. root: what to put before
 * /proc; "" except in tests. */
struct report_place report_place_of(const char *root, const char *path, int dash);

#endif
