/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "bam/cram_count.h"
#include "base/latch.h"
#include "codec/bgzf_block.h"
#include "write/cram_maps.h"
#include "write/out_count.h"

enum { MAPS_MAX = 32 << 10 };    /* bytes of a container that are checked; its maps take about 1 or 2 KiB */

struct out_count {
    enum htsExactFormat format;
    struct cram_count cram;      /* this and the next two: for CRAM only */
    bool maps_broken;            /* of some container */
    uint8_t maps[MAPS_MAX];      /* the first bytes of the container that is passing */
    uint64_t lines;              /* this and all below: for SAM only */
    struct bgzf_codec *codec;    /* NULL: the text is plain, and nothing below is used */
    uint8_t *block;              /* 2 * BGZF_MAX_BLOCK bytes: first for blocks as they come, then for a block's text */
    size_t n;                    /* bytes of blocks that have come and are not yet counted */
    bool broken;                 /* something came that is no block, or could not be inflated */
};

struct out_count *out_count_new(const htsFormat *format)
{
    struct out_count *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->format = format->format;
    cram_count_start(&c->cram, false);
    if (format->format != sam || format->compression == no_compression)
        return c;
    c->codec = bgzf_codec_new(0);
    c->block = malloc(2 * BGZF_MAX_BLOCK);
    if (c->codec && c->block)
        return c;
    out_count_free(c);
    return NULL;
}

void out_count_free(struct out_count *c)
{
    if (!c)
        return;
    bgzf_codec_free(c->codec);
    free(c->block);
    free(c);
}

/* -------------------------------------------------------------------- CRAM */

/* Takes the next n bytes of a container. */
static void see_maps(struct out_count *c, const uint8_t *bytes, size_t n)
{
    uint64_t at = c->cram.at - c->cram.inside;
    if (c->cram.inside == 0 || at >= MAPS_MAX)
        return;
    bool all = n == cram_count_rest(&c->cram) || n >= MAPS_MAX - at;
    n = n < MAPS_MAX - at ? n : MAPS_MAX - at;
    memcpy(c->maps + at, bytes, n);
    if (all && !cram_maps_whole(c->maps, at + n))
        c->maps_broken = true;
}

static void see_cram(struct out_count *c, const uint8_t *bytes, size_t n)
{
    while (n > 0) {
        uint64_t rest = cram_count_rest(&c->cram);
        size_t part = rest == 0 ? 1 : rest < n ? rest : n;
        if (rest > 0)
            see_maps(c, bytes, part);
        cram_count_feed(&c->cram, bytes, part);
        bytes += part;
        n -= part;
    }
}

/* --------------------------------------------------------------------- SAM */

static uint64_t lines_in(const void *text, size_t n)
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
static bool take_block(struct out_count *c)
{
    struct bgzf_frame frame;
    uint8_t *text = c->block + BGZF_MAX_BLOCK;
    enum bgzf_fault fault = c->n > 0 ? bgzf_block_frame(c->block, c->n, &frame) : BGZF_MORE;
    if (fault == BGZF_MORE)
        return false;
    c->broken = fault || bgzf_block_inflate(c->codec, c->block, &frame, text);
    if (c->broken)
        return false;
    c->lines += lines_in(text, frame.inflated_size);
    c->n -= frame.size;
    memmove(c->block, c->block + frame.size, c->n);
    return true;
}

static void see_blocks(struct out_count *c, const uint8_t *bytes, size_t n)
{
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

/* -------------------------------------------------------------------- both */

void out_count_see(void *count, const uint8_t *bytes, size_t n)
{
    struct out_count *c = count;
    if (c->format == cram)
        see_cram(c, bytes, n);
    else if (c->codec)
        see_blocks(c, bytes, n);
    else if (c->format == sam)
        c->lines += lines_in(bytes, n);
}

static int lost(const char *what, uint64_t put, uint64_t came, const char *path, struct latch *latch)
{
    return latch_fail(latch, "writing %s failed: of %llu %s htslib wrote %llu", path, (unsigned long long)put, what,
                      (unsigned long long)came);
}

/* There may be more lines than records: an end of line inside a tag of BAM makes two lines of one, as it does in
 * samtools. Blocks must have been whole. */
int out_count_check(const struct out_count *c, sam_hdr_t *header, uint64_t n, const char *path, struct latch *latch)
{
    uint64_t lines = n + (c->format == sam ? lines_in(sam_hdr_str(header), sam_hdr_length(header)) : 0);
    if (c->maps_broken)
        return latch_fail(latch, "writing %s failed: htslib wrote a container that cannot be read", path);
    if (c->format == cram && !cram_count_agrees(&c->cram, n))
        return lost("records", n, c->cram.records, path, latch);
    if (c->format == sam && (c->broken || c->n > 0 || c->lines < lines))
        return lost("lines", lines, c->lines, path, latch);
    return 0;
}
