/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "base/byte_buffer.h"
#include "stats/coverage_whole.h"

void coverage_range_free(struct coverage_range *range)
{
    free(range->reads);
    free(range->blocks);
    covered_free(&range->covered);
}

void coverage_range_clear(struct coverage_range *range)
{
    range->n = range->n_blocks = range->covered.n = 0;
}

size_t coverage_whole_memory(int32_t n_ref)
{
    return sizeof(struct coverage_whole) + (size_t)n_ref * sizeof(struct coverage_counts);
}

struct coverage_whole *coverage_whole_open(int32_t n_ref)
{
    struct coverage_whole *whole = calloc(1, coverage_whole_memory(n_ref));
    if (whole)
        whole->last = covered_place(0, 1);       /* samtools begins there, as if a read had begun */
    return whole;
}

void coverage_whole_close(struct coverage_whole *whole)
{
    if (!whole)
        return;
    covered_free(&whole->covered);
    free(whole->ends);
    free(whole);
}

/* Counts the blocks that end before this place, and forgets the reads that do. */
static void leave(struct coverage_whole *w, int64_t place)
{
    const struct covered_block *blocks = covered_blocks(&w->covered);
    size_t i = 0;
    for (; i < w->covered.n && blocks[i].end < place; i++)
        w->counts[covered_reference(blocks[i].begin)].places += (uint64_t)(blocks[i].end - blocks[i].begin);
    covered_remove(&w->covered, i);
    for (i = 0; i < w->n_ends && w->ends[i].end < place; i++)
        w->n_kept -= w->ends[i].n;
    w->n_ends -= i;
    if (i > 0)
        memmove(w->ends, w->ends + i, w->n_ends * sizeof *w->ends);
}

void coverage_whole_end(struct coverage_whole *w)
{
    leave(w, INT64_MAX);
}

/* Most reads end at or after the last place. */
static int keep(struct coverage_whole *w, int64_t end)
{
    struct coverage_ends *ends = byte_buffer_grow(w->ends, w->n_ends, &w->room_ends, sizeof *ends);
    size_t at = w->n_ends;
    if (!ends)
        return -1;
    w->ends = ends;
    w->n_kept++;
    while (at > 0 && ends[at - 1].end > end)
        at--;
    if (at > 0 && ends[at - 1].end == end) {
        ends[at - 1].n++;
        return 0;
    }
    memmove(ends + at + 1, ends + at, (w->n_ends++ - at) * sizeof *ends);
    ends[at] = (struct coverage_ends){end, 1};
    return 0;
}

static void leave_out(struct coverage_whole *w, const struct coverage_read *read)
{
    struct coverage_counts *counts = &w->counts[covered_reference(read->begin)];
    counts->spans -= read->end > read->begin;
    counts->bases -= read->bases;
    counts->n_quals -= read->n_quals;
    counts->quals -= read->quals;
}

/* Joins a read that begins at or after the last one. */
static int join_read(struct coverage_whole *w, const struct coverage_read *read, const struct covered_block *blocks,
                     uint64_t limit)
{
    if (read->begin != w->last) {
        leave(w, read->begin);
    } else if (w->n_kept >= limit) {
        leave_out(w, read);
        return 0;
    } else if (read->end == read->begin) {
        return 0;                /* kept only if it is the first one there */
    }
    w->last = read->begin;
    return keep(w, read->end) < 0 ? -1 : covered_add(&w->covered, blocks, read->n_blocks);
}

/* Joins all reads of the range at once. None of them is left out. */
static int join_all(struct coverage_whole *w, const struct coverage_range *range)
{
    int64_t last = range->reads[range->n - 1].begin;
    if (covered_add(&w->covered, covered_blocks(&range->covered), range->covered.n) < 0)
        return -1;
    leave(w, last);
    w->last = last;
    for (size_t i = 0; i < range->n; i++)
        if (range->reads[i].end >= last && keep(w, range->reads[i].end) < 0)
            return -1;
    return 0;
}

int coverage_whole_join(struct coverage_whole *w, const struct coverage_range *range, uint64_t limit)
{
    if (range->n == 0)
        return 0;
    const struct coverage_read *read = range->reads, *end = read + range->n;
    leave(w, read->begin);
    bool is_one_place = w->last == end[-1].begin;        /* then the first read of the range may not be kept */
    if (w->n_kept + range->n <= limit && !is_one_place)
        return join_all(w, range);
    for (size_t at = 0; read < end; at += read++->n_blocks)
        if (join_read(w, read, read->n_blocks > 0 ? range->blocks + at : NULL, limit) < 0)
            return -1;
    return 0;
}
