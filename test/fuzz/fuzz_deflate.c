/* SPDX-License-Identifier: MIT */
/* Our encoder: its output for any bytes inflates to the same bytes, and needs no more room than it was given; and it
 * makes the same bytes with the instructions of newer processors. First byte: the level; next two: the room. */
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

/* Both encoders of an effort. */
struct pair {
    struct bam_deflate *newer, *portable;
};

static void check_room(const struct pair *ours, const uint8_t *data, uint32_t n, size_t room)
{
    uint8_t *out = must_alloc(room), *other = must_alloc(room);
    size_t size = bam_deflate(ours->newer, data, n, out, room);
    MUST(size <= room && (size > 0 || room < n + 5));
    MUST(bam_deflate(ours->portable, data, n, other, room) == size);
    MUST(size == 0 || memcmp(out, other, size) == 0);
    free(out);
    free(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int levels[] = {1, BGZF_LEVEL_DEFAULT, 0};
    static struct bgzf_codec *codecs[3];
    static struct pair pairs[2];
    struct feed f = {data, size};
    unsigned level = feed_byte(&f) % 3, effort = level == 1 ? BAM_DEFLATE_DEFAULT : BAM_DEFLATE_FAST;
    size_t room = (size_t)(feed_byte(&f) | feed_byte(&f) << 8);
    struct pair *ours = &pairs[effort];
    if (!codecs[level])
        MUST(codecs[level] = bgzf_codec_new(levels[level]));
    if (!ours->newer) {
        MUST(ours->newer = bam_deflate_new((int)effort, false));
        MUST(ours->portable = bam_deflate_new((int)effort, true));
    }
    uint32_t n = f.left < BGZF_FILL ? (uint32_t)f.left : BGZF_FILL;
    uint8_t *in = exact_copy(f.p, n);
    check_block(codecs[level], in, n);
    check_room(ours, in, n, room);
    free(in);
    return 0;
}
