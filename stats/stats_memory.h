/* SPDX-License-Identifier: MIT */
/* Memory that the counter of `stats` takes (stats/counter.h). What depends on the records is counted for reads up to a
 * thousand bases; of -p and -S, for which there is no bound, nothing but read groups. Call it before
 * stats_settings_begin(). */
#ifndef STATS_MEMORY_H
#define STATS_MEMORY_H

#include <stddef.h>
#include <htslib/sam.h>

size_t stats_memory_sums(const void *settings, sam_hdr_t *sam, size_t range);
size_t stats_memory_part(const void *settings, sam_hdr_t *sam, size_t range);
size_t stats_memory_whole(const void *settings, sam_hdr_t *sam);

#endif
