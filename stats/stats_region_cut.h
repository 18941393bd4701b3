/* SPDX-License-Identifier: MIT */
/* The part of a record that lies in the regions in which `stats` counts. */
#ifndef STATS_REGION_CUT_H
#define STATS_REGION_CUT_H

#include <stdint.h>
#include "stats/stats_log.h"
#include "stats/stats_targets.h"
#include "stats/stats_view.h"

/* Returns the number of the first region that the record meets, among those from number `from` on, or SIZE_MAX if it
 * meets none. *next gets the number from which the search for the next record begins. */
size_t stats_region_met(const struct stats_regions *list, const struct stats_view *v, size_t from, size_t *next);

/* Returns the number of bases of the CIGAR in this region alone, as samtools counts them. */
uint64_t stats_region_bases(const struct stats_region *region, const struct stats_view *v);

/* Logs the parts of a block that lie in the regions from number `first` on. Returns -1 if out of memory. */
int stats_region_log(struct stats_log *log, const struct stats_regions *list, size_t first, int32_t ref, int64_t begin,
                     int64_t end);

#endif
