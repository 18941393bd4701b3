/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "codec/bgzf_block.h"
#include "write/sam_count.h"

int sam_count_start(struct sam_count *c, bool blocks)
{
    *c = (struct sam_count){0};
    if (!blocks)
        return 0;
    c->codec = bgzf_codec_new(0);
    c->block = malloc(2 * BGZF_MAX_BLOCK);
    if (c->codec && c->block)
        return 0;
    sam_count_free(c);
    return -1;
}

void sam_count_free(struct sam_count *c)
{
    bgzf_codec_free(c->codec);
    free(c->block);
    *c = (struct sam_count){0};
}

uint64_t sam_count_lines(const void *text, size_t n)
{
    const char *at = text, *end = at + n;
    uint64_t lines = 0;
    while (at < end && (at = memchr(at, '\n', (size_t)(end - at)))) {
        lines++;
        at++;
    }
    return lines;
}

/* Counts the lines of the first block and removes it. False: it is not whole, or there is none. */
static bool take_block(struct sam_count *c)
{
    struct bgzf_frame frame;
    uint8_t *text = c->block + BGZF_MAX_BLOCK;
    enum bgzf_fault fault = c->n > 0 ? bgzf_block_frame(c->block, c->n, &frame) : BGZF_MORE;
    if (fault == BGZF_MORE)
        return false;
    c->broken = fault || bgzf_block_inflate(c->codec, c->block, &frame, text);
    if (c->broken)
        return false;
    c->lines += sam_count_lines(text, frame.inflated_size);
    c->n -= frame.size;
    memmove(c->block, c->block + frame.size, c->n);
    return true;
}

void sam_count_feed(struct sam_count *c, const uint8_t *bytes, size_t n)
{
    if (!c->codec) {
        c->lines += sam_count_lines(bytes, n);
        return;
    }
    while (n > 0 && !c->broken) {
        size_t room = BGZF_MAX_BLOCK - c->n, part = n < room ? n : room;
        memcpy(c->block + c->n, bytes, part);
        c->n += part;
        bytes += part;
        n -= part;
        while (take_block(c))
            ;
    }
}

bool sam_count_agrees(const struct sam_count *c, uint64_t n)
{
    return !c->broken && c->n == 0 && c->lines >= n;
}
