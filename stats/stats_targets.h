/* SPDX-License-Identifier: MIT */
/* Regions in which `samtools stats` counts (-t FILE, REGION): a sorted list for each reference. The functions are
 * serial; threads may read a list that no longer changes. */
#ifndef STATS_TARGETS_H
#define STATS_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <htslib/sam.h>

struct latch;

/* Bases first .. last, counted from 1. A region that was given without an end also has what lies beyond the end of the
 * reference. */
struct stats_region {
    int32_t ref;
    int64_t first, last;         /* last: HTS_POS_MAX if there is no end */
};

/* A zero-initialised struct is empty. The regions of one reference are adjacent in each[], sorted, and do not
 * overlap. */
struct stats_regions {
    struct stats_region *each;
    size_t n, room;
    size_t *starts;              /* n_refs + 1 numbers: where the regions of a reference begin; NULL before
                                  * stats_regions_close() */
    int32_t n_refs;
    int32_t bound;               /* references below this one must be in order (samtools' own rule) */
};

/* last: as in struct stats_region. Returns -1 if out of memory. */
int stats_regions_add(struct stats_regions *list, int32_t ref, int64_t first, int64_t last);

/* Sorts the list and joins regions that share at least `shared` bases (0: regions that touch). Returns -1 if out of
 * memory. */
int stats_regions_close(struct stats_regions *list, sam_hdr_t *sam, int shared);

/* Reads the lines of -t FILE: name, first, last base. Returns -1 on an error, which is recorded in the latch. */
int stats_regions_read(struct stats_regions *list, const char *path, sam_hdr_t *sam, struct latch *latch);

/* Returns the last base of the region that the reference has, if the region has no end. Otherwise returns `last`. */
int64_t stats_region_end(const struct stats_region *region, sam_hdr_t *sam);

/* Adds the lengths of all regions, up to the ends above. */
uint64_t stats_regions_bases(const struct stats_regions *list, sam_hdr_t *sam);

/* Returns the number of the first region of the reference, from number `from` on, that ends after pos;
 * list->starts[ref + 1] if there is none. */
size_t stats_regions_find(const struct stats_regions *list, int32_t ref, size_t from, int64_t pos);

void stats_regions_free(struct stats_regions *list);

#endif
