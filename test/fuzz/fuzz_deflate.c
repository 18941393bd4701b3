/* SPDX-License-Identifier: MIT */
/* Our encoder: what it makes of any bytes inflates to them again, in no more room than it was
 * given. First byte: the level; next two: the room. */
#include "codec/bam_deflate.h"
#include "codec/bgzf_block.h"
#include "fuzz.h"

static void check_block(struct bgzf_codec *codec, const uint8_t *data, uint32_t n)
{
    uint8_t *block = must_alloc(BGZF_MAX_BLOCK), *out = must_alloc(n);
    struct bgzf_frame frame;
    uint32_t size = bgzf_block_deflate(codec, data, n, block);
    MUST(bgzf_block_frame(block, size, &frame) == BGZF_OK);
    MUST(frame.size == size && frame.inflated_size == n);
    MUST(bgzf_block_inflate(codec, block, &frame, out) == BGZF_OK);
    MUST(n == 0 || memcmp(out, data, n) == 0);
    free(block);
    free(out);
}

static void check_room(struct bam_deflate *deflate, const uint8_t *data, uint32_t n, size_t room)
{
    uint8_t *out = must_alloc(room);
    size_t size = bam_deflate(deflate, data, n, out, room);
    MUST(size <= room && (size > 0 || room < n + 5));
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int levels[] = {1, BGZF_LEVEL_DEFAULT, 0};
    static struct bgzf_codec *codecs[3];
    static struct bam_deflate *ours;
    struct feed f = {data, size};
    unsigned level = feed_byte(&f) % 3;
    size_t room = (size_t)(feed_byte(&f) | feed_byte(&f) << 8);
    if (!codecs[level])
        MUST(codecs[level] = bgzf_codec_new(levels[level]));
    if (!ours)
        MUST(ours = bam_deflate_new(BAM_DEFLATE_FAST, false));
    uint32_t n = f.left < BGZF_FILL ? (uint32_t)f.left : BGZF_FILL;
    uint8_t *in = exact_copy(f.p, n);
    check_block(codecs[level], in, n);
    check_room(ours, in, n, room);
    free(in);
    return 0;
}
