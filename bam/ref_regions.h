/* SPDX-License-Identifier: MIT */
/* Regions of references. Serial; tasks may share a list that is complete. */
#ifndef REF_REGIONS_H
#define REF_REGIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bam_record;

enum { REGION_UNPLACED = -1 };   /* in place of a reference: the records that have none */

/* Bases begin .. end - 1 of a reference, counted from 0. A region without bases stands for the records that span it. */
struct region {
    int32_t ref;
    int64_t begin, end;
};

/* The end of the region for an index, which has no regions without bases. */
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

/* Sorts the regions into the order of the file, records without reference last, and joins those that overlap or
 * touch. */
void ref_regions_unite(struct ref_regions *list);

/* Returns whether the checked record overlaps a region of the list. ref_regions_unite() must have been called. */
bool ref_regions_has(const struct ref_regions *list, const struct bam_record *record);

#endif
