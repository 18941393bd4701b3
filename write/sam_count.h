/* SPDX-License-Identifier: MIT */
/* How many lines there are in SAM, plain or in BGZF blocks. Serial; fed with the bytes in pieces of any size. */
#ifndef SAM_COUNT_H
#define SAM_COUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bgzf_codec;

struct sam_count {
    uint64_t lines;
    struct bgzf_codec *codec;    /* NULL: the text is plain, and nothing below is used */
    uint8_t *block;              /* BGZF_MAX_BLOCK bytes: what has come of blocks that are not whole ... */
    size_t n;                    /* ... so many; and behind them as many for the text of one */
    bool broken;                 /* there was something else than a block */
};

/* -1: no memory. */
int sam_count_start(struct sam_count *count, bool blocks);
void sam_count_free(struct sam_count *count);

void sam_count_feed(struct sam_count *count, const uint8_t *bytes, size_t n);

/* After the last byte: whether all were blocks, if they are to be, and there are n lines at least. */
bool sam_count_agrees(const struct sam_count *count, uint64_t n);

/* Lines in a text. */
uint64_t sam_count_lines(const void *text, size_t n);

#endif
