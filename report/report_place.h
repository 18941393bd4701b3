/* SPDX-License-Identifier: MIT */
/* The file system that holds a file, by name. Serial. */
#ifndef REPORT_PLACE_H
#define REPORT_PLACE_H

#include <stdint.h>

enum { REPORT_PLACE_NAME = 32 };

struct report_place {
    char file_system[REPORT_PLACE_NAME];   /* "ext4", or "device"; "": unknown, or it is a pipe */
    uint64_t bytes;              /* UINT64_MAX: unknown */
};

/* Gets the place of a file or folder; "-" stands for the descriptor. Only regular files have a size. root: prefix of
 * /proc; "" except in tests. */
struct report_place report_place_of(const char *root, const char *path, int dash);

#endif
