/* SPDX-License-Identifier: MIT */
/* Notices mates that do not follow one another where that is no error, in little memory: it remembers the last ones, so
 * in a file that is not grouped by name it soon finds some. Serial. */
#ifndef PARTED_MATES_H
#define PARTED_MATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct parted_mates {
    const char *path;            /* for the warning */
    uint64_t *last;              /* of each hash; 0: none */
    bool found;                  /* the warning was given */
};

/* -1: out of memory. Either way, free it. */
int parted_mates_open(struct parted_mates *mates, const char *path);
void parted_mates_free(struct parted_mates *mates);

/* Takes n numbers: a fixed_orphans_fn for struct parted_mates. Warns of the first two that are halves of a pair. */
int parted_mates_put(void *parted_mates, const uint64_t *mates, size_t n);

#endif
