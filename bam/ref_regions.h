/* SPDX-License-Identifier: MIT */
/* Regions of references. Serial; tasks may look at a list that changes no more. */
#ifndef REF_REGIONS_H
#define REF_REGIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bam_record;

enum { REGION_UNPLACED = -1 };   /* in place of a reference: the records that have none */

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

/* A zero-initialised struct is empty. Its owner frees `each`. */
struct ref_regions {
    struct region *each;
    size_t n, room;
};

static inline size_t ref_regions_memory(const struct ref_regions *list)
{
    return list->room * sizeof *list->each;
}

/* -1: out of memory. */
int ref_regions_add(struct ref_regions *list, const struct region *region);

/* Adds the records that have no reference. -1: out of memory. */
int ref_regions_add_unplaced(struct ref_regions *list);

/* Puts the regions in the order of the file, records without reference last. Those that overlap or touch become one. */
void ref_regions_unite(struct ref_regions *list);

/* Whether the checked record overlaps a region of the list, which is united. */
bool ref_regions_has(const struct ref_regions *list, const struct bam_record *record);

#endif
