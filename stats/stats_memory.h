/* SPDX-License-Identifier: MIT */
/* The memory that the counter of `stats` takes (stats/counter.h). Memory that depends on the records is counted for
 * reads of up to a thousand bases. The memory of -p and -S has no bound: only read groups are counted for them. Call
 * these functions before stats_settings_begin(). */
#ifndef STATS_MEMORY_H
#define STATS_MEMORY_H

#include <stddef.h>
#include <htslib/sam.h>

size_t stats_memory_sums(const void *settings, sam_hdr_t *sam, size_t range);
size_t stats_memory_part(const void *settings, sam_hdr_t *sam, size_t range);
size_t stats_memory_whole(const void *settings, sam_hdr_t *sam);

#endif
