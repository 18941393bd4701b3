/* SPDX-License-Identifier: MIT */
/* Plain gzip (RFC 1952) at a place where a BGZF block could begin: the bytes of a member, in blocks like those of BGZF.
 * It is decompressed serially. */
#ifndef GZIP_BLOCKS_H
#define GZIP_BLOCKS_H

#include "base/byte_window.h"
#include "codec/bgzf_block.h"

struct gzip_blocks {
    struct gzip_member *member;
    uint64_t begin;              /* where the member begins in the input */
    bool ended;
    uint32_t size;               /* size of the block in data */
    uint8_t data[BGZF_MAX_BLOCK];
};

/* Opens the member at the beginning of the window. Returns NULL if out of memory. */
struct gzip_blocks *gzip_blocks_open(const struct byte_window *window);
void gzip_blocks_close(struct gzip_blocks *blocks);

/* Makes the next block and takes its compressed bytes off the window. help: as for byte_window_more(). size is 0 after
 * the end of the member. Returns BGZF_MORE if the input ends before that, or cannot be read; the latch has a read error
 * then. */
enum bgzf_fault gzip_blocks_next(struct gzip_blocks *blocks, struct byte_window *window, task_help_fn *help, void *arg);

#endif
