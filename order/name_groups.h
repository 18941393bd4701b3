/* SPDX-License-Identifier: MIT */
/* The first parts of read names, for files that have a few different ones. Names from different runs share
 * nothing, but all names of one run begin alike.
 *
 *   A00217:77:HFJWFDSXX:2:2510:22435:25191
 *   A00296:43:HCLHLDSXX:4:1351:25518:9925
 *   | group           || rest               |
 *
 * Every group has a range of keys; the ranges have the order of the names. A name of no group gets the one
 * key between the ranges of the groups around it. */
#ifndef NAME_GROUPS_H
#define NAME_GROUPS_H

#include "order/text_code.h"

/* Most groups, and most bytes that their names may have together. */
enum { GROUPS_MAX = 64, GROUPS_POOL = 4096 };

/* Read-only once learned. */
struct name_groups {
    bool natural;                /* true: natural order; false: that of strcmp() */
    size_t n;                    /* 0: no groups are used, and all names are in one group with an empty name */
    uint64_t range;              /* keys per group */
    const char *name[GROUPS_MAX];   /* in their order; point into pool[] */
    char pool[GROUPS_POOL];
};

/* Finds the groups of the n names and removes them from the names in sample. If the names do not fall into
 * groups, groups->n becomes 0 and sample stays as it is. */
void name_groups_learn(struct name_groups *groups, bool natural, struct text *sample, size_t n);

/* Returns the rest of the name behind its group and sets *key to the first key of the group. For a
 * name of no group, returns NULL and sets *key to the whole key of the name. */
const char *name_groups_find(const struct name_groups *groups, const char *name, uint64_t *key);

#endif
