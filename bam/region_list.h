/* SPDX-License-Identifier: MIT */
/* Regions of references. Serial; tasks may look at a list that changes no more. */
#ifndef REGION_LIST_H
#define REGION_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bam_record;

/* Bases begin .. end - 1 of a reference, from 0 on. One without bases is where a record goes over it. */
struct region {
    int32_t ref;
    int64_t begin, end;
};

/* Where it ends for an index, which knows no regions without bases. */
static inline int64_t region_end(const struct region *region)
{
    return region->end > region->begin ? region->end : region->begin + 1;
}

/* One of all zeros is empty. Its owner frees `each`. */
struct region_list {
    struct region *each;
    size_t n, room;
};

static inline size_t region_list_memory(const struct region_list *list)
{
    return list->room * sizeof *list->each;
}

/* -1: no memory. */
int region_list_add(struct region_list *list, const struct region *region);

/* Puts the regions in order. Those that overlap or touch become one. */
void region_list_unite(struct region_list *list);

/* Whether the checked record overlaps a region of the list, which is united. */
bool region_list_has(const struct region_list *list, const struct bam_record *record);

#endif
