/* SPDX-License-Identifier: MIT */
/* Detects mates that do not follow one another, for inputs where that is not an error. It needs little memory because
 * it remembers only the latest mates: in a file that is not grouped by name, it soon finds some. Serial. */
#ifndef PARTED_MATES_H
#define PARTED_MATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct parted_mates {
    const char *path;            /* for the warning */
    uint64_t *last;              /* the last mate of each hash; 0: none */
    bool found;                  /* the warning was given */
};

/* -1: out of memory. Call parted_mates_free() in either case. */
int parted_mates_open(struct parted_mates *mates, const char *path);
void parted_mates_free(struct parted_mates *mates);

/* Returns the bytes that it takes. */
size_t parted_mates_memory(void);

/* A fixed_orphans_fn for struct parted_mates: takes n numbers. Warns once, at the first two numbers that are halves of
 * a pair. */
int parted_mates_put(void *parted_mates, const uint64_t *mates, size_t n);

#endif
