/* SPDX-License-Identifier: MIT */
/* The first parts of read names, where a file has a few different ones: names from
 * several runs share nothing with each other, but all names of a run do.
 *
 *   A00217:77:HFJWFDSXX:2:2510:22435:25191
 *   A00296:43:HCLHLDSXX:4:1351:25518:9925
 *   | group           || rest               |
 *
 * Every group has a range of keys, in the order of the names; names of no group
 * share one key between those ranges. */
#ifndef NAME_GROUPS_H
#define NAME_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "order/text_code.h"

enum { GROUPS_MAX = 64, GROUPS_POOL = 4096 };

struct name_group {
    uint64_t word;               /* its 8 bytes from `common` on, as a big-endian number */
    uint64_t base;               /* its first key */
    const char *name;            /* in pool[], not ended */
    size_t n;
};

/* Read-only once learned. */
struct name_groups {
    bool natural;                /* the order: natural, or strcmp */
    size_t n;                    /* 0: not used, all names are one group with an empty name */
    size_t common;               /* bytes that all groups begin with */
    uint64_t range;              /* keys per group */
    struct name_group by_word[GROUPS_MAX];   /* to find one */
    struct name_group by_name[GROUPS_MAX];   /* in the order of the names */
    char pool[GROUPS_POOL];
};

/* Learns the groups of the n names and cuts them from the sample, or leaves both
 * as they are when that teaches nothing. */
void name_groups_learn(struct name_groups *groups, bool natural, struct text *sample, size_t n);

/* The rest of the name, and in *key the first key of its group; or NULL and the
 * name's whole key. size is that of the buffer, NUL included. */
const char *name_groups_find(const struct name_groups *groups, const char *name, size_t size, uint64_t *key);

#endif
