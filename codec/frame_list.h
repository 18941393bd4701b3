/* SPDX-License-Identifier: MIT */
/* The frames of the BGZF blocks that lie whole in a piece of a file. Who reads the piece lists them, while the bytes
 * are in that thread's caches. So who takes the blocks need not look at their headers and footers.
 *
 * A listed frame is what bgzf_block_frame() said at that place, of those bytes. Where the piece's first block begins
 * is a guess. If it is wrong, the list has places where no block begins, and nobody asks for those: a block is found
 * by its place. So a wrong guess costs time only. */
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
    uint64_t begin;              /* of the piece: its place in the input */
    uint32_t n;
    uint32_t next;               /* of the frames: the first that was not passed yet */
    struct listed_frame frames[FRAME_LIST_MOST];
};

/* Lists the blocks of piece[n], n < 2^32, which lies at `begin` of the input: those that bgzf_block_frame() finds no
 * fault with, up to the first fault, and as many as the list has room for. Bytes that are not BGZF give an empty
 * list. */
void frame_list_make(struct frame_list *list, const uint8_t *piece, size_t n, uint64_t begin);

/* The frame of the block at this place of the input; NULL: it is not listed. Places must not become smaller from
 * call to call. The frame is the list's. */
const struct bgzf_frame *frame_list_find(struct frame_list *list, uint64_t place);

/* As bgzf_block_frame() of p[avail], which lies at this place of the input. If the block is listed, its bytes are not
 * looked at. list NULL: there is no list. */
enum bgzf_fault frame_list_frame(struct frame_list *list, uint64_t place, const uint8_t *p, size_t avail,
                                 struct bgzf_frame *frame);

#endif
