/* SPDX-License-Identifier: MIT */
#include "stats/stats_region_cut.h"

size_t stats_region_met(const struct stats_regions *list, const struct stats_view *v, size_t from, size_t *next)
{
    size_t i = stats_regions_find(list, v->ref, from, v->pos);
    *next = i;
    if (i == list->starts[v->ref + 1])
        return SIZE_MAX;
    int64_t end = v->pos + (stats_view_is_unmapped(v) ? 1 : bam_record_ref_span(v->record));
    if (list->each[i].first <= end)
        return i;
    *next = from;                /* samtools does not advance for a record that lies between regions */
    return SIZE_MAX;
}

static int64_t above_zero(int64_t n)
{
    return n > 0 ? n : 0;
}

uint64_t stats_region_bases(const struct stats_region *region, const struct stats_view *v)
{
    int64_t place = (int64_t)v->pos + 1, sum = 0;
    for (uint32_t i = 0; i < v->n_cigar; i++) {
        uint32_t op = stats_view_op(v, i);
        int64_t n = bam_cigar_oplen(op);
        switch (bam_cigar_op(op)) {
        case BAM_CMATCH: case BAM_CEQUAL: case BAM_CDIFF:
            sum += above_zero(n - above_zero(region->first - place) - above_zero(place + n - 1 - region->last));
            place += n;
            break;
        case BAM_CINS:           /* samtools advances here, but not where bases are deleted */
            place += n;
            if (place >= region->first && place <= region->last)
                sum += n;
            break;
        }
    }
    return (uint64_t)sum;
}

int stats_region_log(struct stats_log *log, const struct stats_regions *list, size_t first, int32_t ref, int64_t begin,
                     int64_t end)
{
    for (size_t i = first; i < list->starts[ref + 1] && list->each[i].first <= end; i++) {
        int64_t from = begin > list->each[i].first - 1 ? begin : list->each[i].first - 1;
        int64_t to = end < list->each[i].last ? end : list->each[i].last;
        if (from < to && stats_log_block(log, from, to) < 0)
            return -1;
    }
    return 0;
}
