/* SPDX-License-Identifier: MIT */
/* Regions in which `samtools stats` counts (-t FILE, REGION): sorted lists for each reference. Serial; threads may
 * look at a list that changes no more. */
#ifndef STATS_TARGETS_H
#define STATS_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <htslib/sam.h>

struct latch;

/* Bases first .. last, from 1 on. */
struct stats_region {
    int32_t ref;
    int64_t first, last;
    bool is_open;                /* given without an end */
};

/* A zero-initialised struct is empty. Regions of one reference stand together, in order, and do not meet each other. */
struct stats_regions {
    struct stats_region *each;
    size_t n, room;
    size_t *starts;              /* n_refs + 1 numbers: where the regions of a reference begin; NULL before _close() */
    int32_t n_refs;
    int32_t bound;               /* references below this one must be in order (samtools' own rule) */
};

/* last: HTS_POS_MAX if the region was given without an end. -1: out of memory. */
int stats_regions_add(struct stats_regions *list, int32_t ref, int64_t first, int64_t last);

/* Sorts the list and joins regions that share so many bases (0: that touch). -1: out of memory. */
int stats_regions_close(struct stats_regions *list, sam_hdr_t *sam, int shared);

/* Reads the lines of -t FILE: name, first, last base. -1: an error, recorded in the latch. */
int stats_regions_read(struct stats_regions *list, const char *path, sam_hdr_t *sam, struct latch *latch);

/* Adds the lengths of all regions. */
uint64_t stats_regions_bases(const struct stats_regions *list);

/* The first region of the reference from number `from` on that ends behind pos; list->starts[ref + 1] if there is
 * none. */
size_t stats_regions_find(const struct stats_regions *list, int32_t ref, size_t from, int64_t pos);

void stats_regions_free(struct stats_regions *list);

#endif
