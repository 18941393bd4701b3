/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "bam/bam_record.h"
#include "bam/ref_regions.h"
#include "base/byte_buffer.h"

int ref_regions_add(struct ref_regions *list, const struct region *region)
{
    struct region *each = byte_buffer_grow(list->each, list->n, &list->room, sizeof *each);
    if (!each)
        return -1;
    list->each = each;
    list->each[list->n++] = *region;
    return 0;
}

int ref_regions_add_unplaced(struct ref_regions *list)
{
    static const struct region unplaced = {REGION_UNPLACED, INT64_MIN, INT64_MAX};
    return ref_regions_add(list, &unplaced);
}

/* The place of the reference in a sorted file. */
static uint32_t rank_of(int32_t ref)
{
    return (uint32_t)ref;
}

static int by_place(const void *first, const void *second)
{
    const struct region *a = first, *b = second;
    return a->ref != b->ref ? (rank_of(a->ref) > rank_of(b->ref)) - (rank_of(a->ref) < rank_of(b->ref))
         : a->begin != b->begin ? (a->begin > b->begin) - (a->begin < b->begin)
         : (a->end > b->end) - (a->end < b->end);
}

void ref_regions_unite(struct ref_regions *list)
{
    size_t n = 0;
    if (list->n)
        qsort(list->each, list->n, sizeof *list->each, by_place);
    for (size_t i = 0; i < list->n; i++) {
        const struct region *next = &list->each[i];
        struct region *last = n ? &list->each[n - 1] : NULL;
        if (!last || last->ref != next->ref || last->end < next->begin)
            list->each[n++] = *next;
        else if (last->end < next->end)
            last->end = next->end;
    }
    list->n = n;
}

/* Regions do not overlap, so their ends rise like their beginnings. */
bool ref_regions_has(const struct ref_regions *list, const struct bam_record *r)
{
    int32_t ref = bam_record_ref_id(r);
    int64_t pos = bam_record_pos(r);
    size_t low = 0, high = list->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct region *at = &list->each[middle];
        bool is_before = rank_of(at->ref) < rank_of(ref) || (at->ref == ref && at->end <= pos);
        low = is_before ? middle + 1 : low;
        high = is_before ? high : middle;
    }
    const struct region *found = &list->each[low];
    return low < list->n && found->ref == ref && found->begin < pos + bam_record_ref_span(r);
}
