/* SPDX-License-Identifier: MIT */
/* Records in output order, as a merge task lists them. For each record, the task also finds where a block that began
 * with it would end, because the list is in its cache then. So the main thread cuts blocks without reading most
 * records. */
#ifndef RECORD_LIST_H
#define RECORD_LIST_H

#include <stdlib.h>
#include "bam/bam_record.h"
#include "base/prefetch.h"
#include "codec/bgzf_block.h"

struct record_list {
    struct record_ref *records;
    uint16_t *fit;               /* for each record: the number of records from it on that fill a block which the next
                                  * record does not fit into; 0: the list ends before, or the record is longer than a
                                  * block. NULL: unknown, or the list will not stay unchanged */
    size_t n;
    size_t open;                 /* while the list is made: the first record whose fit is still unknown, ... */
    uint32_t open_size;          /* ... and bytes of records from it on */
};

_Static_assert(BGZF_FILL / BAM_MIN_RECORD <= UINT16_MAX, "fit holds the records of a block");

static inline void record_list_empty(struct record_list *list)
{
    list->n = list->open = list->open_size = 0;
}

/* The list must have room. input: as in struct record_ref. */
static inline void record_list_add(struct record_list *list, const uint8_t *data, uint32_t size, uint16_t input)
{
    for (; list->open < list->n && size > BGZF_FILL - list->open_size; list->open++) {
        list->fit[list->open] = (uint16_t)(list->n - list->open);
        list->open_size -= list->records[list->open].size;
    }
    list->fit[list->n] = 0;
    list->records[list->n++] = (struct record_ref){data, size, 0, input};
    if (size > BGZF_FILL)
        list->open = list->n;
    else
        list->open_size += size;
}

/* Makes an empty list with room for n records. -1: out of memory. Free it in both cases. */
static inline int record_list_alloc(struct record_list *list, size_t n)
{
    *list = (struct record_list){.records = malloc(n * sizeof *list->records), .fit = malloc(n * sizeof *list->fit)};
    return list->records && list->fit ? 0 : -1;
}

static inline void record_list_free(struct record_list *list)
{
    free(list->records);
    free(list->fit);
}

/* Prefetches a record that will be read soon: in sorted order records are scattered over the arena. */
PREFETCH_FN void record_list_prefetch(const struct record_ref *record)
{
    prefetch_lines(record->data, record->size);
}

/* Bytes of memory of a list for n records. */
static inline size_t record_list_memory(size_t n)
{
    return n * (sizeof(struct record_ref) + sizeof(uint16_t));
}

#endif
