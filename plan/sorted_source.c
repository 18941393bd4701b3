/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "plan/sorted_source.h"
#include "read/record_slice.h"

/* In the task of a range. What it could not copy is not there, which is seen at the end, too. */
static void copy(void *source, uint32_t index, const struct record_list *list)
{
    const struct sorted_source *s = source;
    struct record_slice *to = &s->slices[index];
    enum bam_fault fault = BAM_OK;
    size_t bytes = 0;
    for (size_t i = 0; i < list->n; i++)
        bytes += list->records[i].size;
    bool done = byte_buffer_reserve(&to->records, bytes) == 0;
    for (size_t i = 0; i < list->n && done && !fault; i++) {
        size_t start = to->records.n;
        if (i + 1 < list->n)
            record_list_prefetch(&list->records[i + 1]);
        done = byte_buffer_append(&to->records, list->records[i].data, list->records[i].size) == 0
            && record_slice_list(to, start, false, NULL, &fault) == 0;
    }
    if (!done)
        latch_fail(&s->sorted->latch, "out of memory for what is merged");
}

static enum chunk_state advance(void *source)
{
    const struct sorted_source *s = source;
    int ready = merge_ring_advance(s->sorted->merge);
    return ready > 0 ? CHUNK_MADE : ready == 0 ? CHUNK_AWAITED
         : latch_tripped(&s->sorted->latch) ? CHUNK_FAILED : CHUNK_NONE;
}

static int take(void *source, struct record_slice *slice)
{
    struct sorted_source *s = source;
    struct record_list list;
    if (merge_ring_next(s->sorted->merge, &list) <= 0)
        return latch_tripped(&s->sorted->latch) ? -1 : 0;
    struct record_slice *made = &s->slices[merge_ring_given(s->sorted->merge)], spare = *slice;
    record_slice_clear(&spare);
    *slice = *made;
    *made = spare;
    slice->number = s->n + 1;
    s->n += slice->n;
    s->checksum += slice->checksum;
    return 0;
}

static bool help(void *source)
{
    const struct sorted_source *s = source;
    return merge_ring_help(s->sorted->merge);
}

int sorted_source_open(struct sorted_source *s, struct sorted *sorted, struct merge_ring_options *how)
{
    *s = (struct sorted_source){.sorted = sorted, .n_slices = how->n_ranges};
    how->copy = copy;
    how->arg = s;
    how->n_bytes = SORTED_SLICE;
    how->n_spare = 0;
    s->slices = calloc(s->n_slices, sizeof *s->slices);
    return s->slices ? 0 : latch_fail(&sorted->latch, "out of memory");
}

void sorted_source_close(struct sorted_source *s)
{
    for (uint32_t i = 0; s->slices && i < s->n_slices; i++)
        record_slice_free(&s->slices[i]);
    free(s->slices);
    *s = (struct sorted_source){.n = s->n};
}

struct marked_source sorted_source_records(struct sorted_source *s)
{
    return (struct marked_source){advance, take, help, s};
}
