/* SPDX-License-Identifier: MIT */
#include <string.h>
#include "codec/frame_list.h"

/* Whether a block seems to begin at p: it has a frame, and so has the one behind it, or the piece ends before that can
 * be known. */
static int seems_block(const uint8_t *p, size_t n)
{
    struct bgzf_frame frame, behind;
    if (bgzf_block_frame(p, n, &frame) != BGZF_OK)
        return 0;
    enum bgzf_fault fault = bgzf_block_frame(p + frame.size, n - frame.size, &behind);
    return fault == BGZF_OK || fault == BGZF_MORE;
}

/* Where the first block seems to begin; n: nowhere. It can only be in the first bytes, because no block is longer. */
static size_t guess_first(const uint8_t *piece, size_t n)
{
    size_t most = n < BGZF_MAX_BLOCK ? n : BGZF_MAX_BLOCK;
    for (const uint8_t *p = piece; (p = memchr(p, bgzf_block_eof[0], (size_t)(piece + most - p))); p++)
        if (seems_block(p, (size_t)(piece + n - p)))
            return (size_t)(p - piece);
    return n;
}

void frame_list_make(struct frame_list *list, const uint8_t *piece, size_t n, uint64_t begin)
{
    list->begin = begin;
    list->n = list->next = 0;
    size_t at = guess_first(piece, n);
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
