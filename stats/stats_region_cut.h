/* SPDX-License-Identifier: MIT */
/* The part of a record that lies in the regions in which `stats` counts. */
#ifndef STATS_REGION_CUT_H
#define STATS_REGION_CUT_H

#include <stdint.h>
#include "stats/stats_log.h"
#include "stats/stats_targets.h"
#include "stats/stats_view.h"

/* The first region that the record meets, among those from number `from` on; SIZE_MAX: none. *next gets the number
 * from which to look for the next record. */
size_t stats_region_met(const struct stats_regions *list, const struct stats_view *v, size_t from, size_t *next);

/* The bases of the CIGAR in that region alone, as samtools counts them. */
uint64_t stats_region_bases(const struct stats_region *region, const struct stats_view *v);

/* Logs what of a block lies in the regions from number `first` on. -1: out of memory. */
int stats_region_log(struct stats_log *log, const struct stats_regions *list, size_t first, int32_t ref, int64_t begin,
                     int64_t end);

#endif
