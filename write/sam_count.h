/* SPDX-License-Identifier: MIT */
/* Counts the lines of SAM, plain or in BGZF blocks. Serial. It is fed with
 * the bytes, in pieces of any size. */
#ifndef SAM_COUNT_H
#define SAM_COUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bgzf_codec;

struct sam_count {
    uint64_t lines;
    struct bgzf_codec *codec;    /* NULL: the text is plain, and nothing below is used */
    uint8_t *block;              /* two times BGZF_MAX_BLOCK bytes: for blocks, as they come,
                                  * and for one block's text */
    size_t n;                    /* bytes of blocks that have come and are not yet counted */
    bool broken;                 /* something came that is no block, or could not be inflated */
};

/* blocks: the text is in BGZF blocks. -1: no memory. */
int sam_count_start(struct sam_count *count, bool blocks);
void sam_count_free(struct sam_count *count);

void sam_count_feed(struct sam_count *count, const uint8_t *bytes, size_t n);

/* Call after the last byte. Whether there are at least n lines and, if the text is
 * in blocks, all blocks were whole. */
bool sam_count_agrees(const struct sam_count *count, uint64_t n);

/* Lines in a text. */
uint64_t sam_count_lines(const void *text, size_t n);

#endif
