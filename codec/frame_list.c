/* SPDX-License-Identifier: MIT */
#include "codec/frame_list.h"

void frame_list_make(struct frame_list *list, const uint8_t *piece, size_t n, uint64_t begin)
{
    list->begin = begin;
    list->n = list->next = 0;
    size_t at = bgzf_block_find(piece, n);
    while (list->n < FRAME_LIST_MOST) {
        struct listed_frame *f = &list->frames[list->n];
        if (bgzf_block_frame(piece + at, n - at, &f->frame) != BGZF_OK)
            return;
        f->at = (uint32_t)at;
        at += f->frame.size;
        list->n++;
    }
}

const struct bgzf_frame *frame_list_find(struct frame_list *list, uint64_t place)
{
    while (list->next < list->n && list->begin + list->frames[list->next].at < place)
        list->next++;
    if (list->next == list->n || list->begin + list->frames[list->next].at != place)
        return NULL;
    return &list->frames[list->next].frame;
}

enum bgzf_fault frame_list_frame(struct frame_list *list, uint64_t place, const uint8_t *p, size_t avail,
                                 struct bgzf_frame *frame)
{
    const struct bgzf_frame *listed = list ? frame_list_find(list, place) : NULL;
    if (!listed)
        return bgzf_block_frame(p, avail, frame);
    *frame = *listed;
    return BGZF_OK;
}
