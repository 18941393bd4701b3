/* SPDX-License-Identifier: MIT */
#include <string.h>
#include "stats/stats_memory.h"
#include "stats/stats_part.h"
#include "stats/stats_settings.h"

enum { READ = 1000 };            /* bases of a read */

/* Returns the number of values of -S that are known in advance: the read groups. */
static size_t values(const struct stats_settings *s, sam_hdr_t *sam)
{
    if (!s->split_tag)
        return 0;
    int groups = strncmp(s->split_tag, "RG", 2) == 0 ? sam_hdr_count_lines(sam, "RG") : 0;
    return groups > 1 ? (size_t)groups : 1;
}

size_t stats_memory_sums(const void *settings, sam_hdr_t *sam, size_t range)
{
    (void)range;
    return (1 + values(settings, sam)) * stats_sums_memory(READ);
}

/* The values divide the records of a range among them, but each array has a least size. */
size_t stats_memory_part(const void *settings, sam_hdr_t *sam, size_t range)
{
    const struct stats_settings *s = settings;
    size_t pointers = s->targets_path ? (size_t)sam_hdr_nref(sam) * sizeof(size_t) : 0, n = 1 + values(s, sam);
    struct stats_depth_bins bins;
    bool has_range = stats_depth_bins_set(&bins, s->depth_min, s->depth_max, s->depth_step) == 0
                  && stats_range_takes(&bins) && !s->overlaps && !stats_settings_in_sequence(s);
    size_t range_memory = has_range ? stats_range_memory(bins.n, READ) : 0;
    return n * (sizeof(struct stats_part) + pointers + range_memory + stats_log_memory(0, s->fasta_path, s->overlaps))
         + (n > 1 ? 2 : 1) * stats_log_memory(range, s->fasta_path, s->overlaps);
}

size_t stats_memory_whole(const void *settings, sam_hdr_t *sam)
{
    const struct stats_settings *s = settings;
    struct stats_depth_bins bins;
    size_t depths = stats_depth_bins_set(&bins, s->depth_min, s->depth_max, s->depth_step) == 0 ? bins.n : 0;
    return (1 + values(s, sam)) * stats_whole_memory(depths, s->gc_bin, sam, s->fasta_path ? READ : 0);
}
