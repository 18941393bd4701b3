/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "base/engine.h"
#include "base/latch.h"
#include "base/clocks.h"
#include "sort/merge_ring.h"
#include "sormadup/sorted_slices.h"
#include "read/record_slice.h"

/* Runs in the task of a range. Records that it could not copy are missing, which is also noticed at the end. */
static void copy(void *stream, uint32_t index, const struct record_list *list)
{
    enum { AHEAD = 4 };          /* records that are prefetched: they are scattered over the arena */
    const struct sorted_slices *s = stream;
    struct record_slice *to = &s->slices[index];
    enum bam_fault fault = BAM_OK;
    size_t bytes = 0;
    enum stage before = clocks_enter(s->sorted->engine->clocks, STAGE_GATHER);
    for (size_t i = 0; i < list->n; i++)
        bytes += list->records[i].size;
    bool done = byte_buffer_reserve(&to->records, bytes) == 0;
    for (size_t i = 0; i < list->n && done && !fault; i++) {
        size_t start = to->records.n;
        if (i + AHEAD < list->n)
            record_list_prefetch(&list->records[i + AHEAD]);
        done = byte_buffer_append(&to->records, list->records[i].data, list->records[i].size) == 0
            && record_slice_list(to, start, false, NULL, &fault) == 0;
    }
    clocks_leave(s->sorted->engine->clocks, before, to->records.n);
    if (!done)
        latch_fail(s->sorted->engine->latch, "out of memory for merged records");
}

enum chunk_state sorted_slices_advance(void *stream)
{
    return merge_ring_advance(((const struct sorted_slices *)stream)->sorted->merge);
}

int sorted_slices_take(void *stream, struct record_slice *slice)
{
    struct sorted_slices *s = stream;
    struct record_list list;
    merge_ring_take(s->sorted->merge, &list);
    struct record_slice *made = &s->slices[merge_ring_given(s->sorted->merge)], spare = *slice;
    record_slice_clear(&spare);
    *slice = *made;
    *made = spare;
    slice->number = s->taken.n + 1;
    tally_add(&s->taken, (struct tally){.n = slice->n, .checksum = slice->checksum});
    return 0;
}

bool sorted_slices_help(void *stream)
{
    return merge_ring_help(((const struct sorted_slices *)stream)->sorted->merge);
}

/* Number of copies being made or waiting to be taken. */
static uint32_t count_slices(int n_threads)
{
    enum { SLICES_MORE = 6 };    /* beyond the number of threads, which wait for the oldest to be taken */
    return (uint32_t)n_threads + SLICES_MORE;
}

size_t sorted_slices_memory(int n_threads)
{
    enum { RECORD = 256 };       /* usual bytes of a record */
    return count_slices(n_threads) * record_slice_memory(SORTED_SLICE, SORTED_SLICE / RECORD);
}

/* Records of a slice, estimated from the mean of all. */
static size_t records_of_slice(const struct sorted *s)
{
    const struct bam_arena *all = s->arenas.filled;
    return (size_t)(SORTED_SLICE / ((all->origin + all->walked) / (all->n_records + 1) + 1));
}

/* A range that needs another pass makes all others wait for it, so a range may be larger than a slice of a run. */
static int open_copies(struct sorted_slices *s, struct sorted *sorted, struct merge_ring_options *how)
{
    uint32_t most = count_slices(how->engine->n_threads);
    how->n_ranges = how->n_ranges < most ? how->n_ranges : most;
    *s = (struct sorted_slices){.sorted = sorted, .n_slices = how->n_ranges};
    how->copy = copy;
    how->arg = s;
    how->n_bytes = 2 * (sorted->plan.slice_size > SORTED_SLICE ? sorted->plan.slice_size : (size_t)SORTED_SLICE);
    how->n_wanted = records_of_slice(sorted);
    how->n_spare = 0;
    s->slices = calloc(s->n_slices, sizeof *s->slices);
    return s->slices ? 0 : latch_fail(sorted->engine->latch, "out of memory");
}

int sorted_slices_begin(struct sorted_slices *s, struct sorted *sorted)
{
    struct merge_ring_options how;
    if (sorted_prepare_merge(sorted, &how, false) < 0 || open_copies(s, sorted, &how) < 0
        || sorted_begin_merge(sorted, &how) < 0)
        return -1;
    sorted_say_merge(sorted, how.runs.n, sorted->arenas.filled->n_sublists);
    return 0;
}

void sorted_slices_close(struct sorted_slices *s)
{
    for (uint32_t i = 0; s->slices && i < s->n_slices; i++)
        record_slice_free(&s->slices[i]);
    free(s->slices);
    *s = (struct sorted_slices){.taken = s->taken};
}

int sorted_slices_end(void *stream, struct tally *given)
{
    const struct sorted_slices *s = stream;
    *given = s->taken;
    return tally_compare(bam_arena_tally(s->sorted->arenas.filled), s->taken, "in the merge",
                         s->sorted->in.each->name, s->sorted->engine->latch);
}
