/* SPDX-License-Identifier: MIT */
/* The frames of the BGZF blocks that lie completely in a piece of a file. The thread that reads the piece lists them
 * while the bytes are in its caches. So the consumer of the blocks need not look at their headers and footers.
 *
 * A listed frame is the result of bgzf_block_frame() for the bytes at that place. The beginning of the piece's first
 * block is a guess. If it is wrong, the list has places where no block begins. These are never looked up, since a block
 * is found by its place. So a wrong guess costs time only. */
#ifndef FRAME_LIST_H
#define FRAME_LIST_H

#include <stddef.h>
#include <stdint.h>
#include "codec/bgzf_block.h"

enum { FRAME_LIST_MOST = 256 };

struct listed_frame {
    uint32_t at;                 /* bytes from the beginning of the piece */
    struct bgzf_frame frame;
};

struct frame_list {
    uint64_t begin;              /* the piece's place in the input */
    uint32_t n;
    uint32_t next;               /* the first frame that was not passed yet */
    struct listed_frame frames[FRAME_LIST_MOST];
};

/* Lists the blocks of piece[n], n < 2^32, which lies at `begin` of the input, up to the first block in which
 * bgzf_block_frame() finds a fault, and up to the list's capacity. Bytes that are not BGZF give an empty list. */
void frame_list_make(struct frame_list *list, const uint8_t *piece, size_t n, uint64_t begin);

/* Returns the frame of the block at this place of the input, or NULL if it is not listed. Places must not become
 * smaller from call to call. The list owns the frame. */
const struct bgzf_frame *frame_list_find(struct frame_list *list, uint64_t place);

/* Does what bgzf_block_frame() does, for p[avail], which lies at this place of the input. If the block is listed, its
 * bytes are not looked at. list: NULL if there is none. */
enum bgzf_fault frame_list_frame(struct frame_list *list, uint64_t place, const uint8_t *p, size_t avail,
                                 struct bgzf_frame *frame);

#endif
