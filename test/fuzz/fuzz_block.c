/* SPDX-License-Identifier: MIT */
/* One foreign BGZF block. */
#include "codec/bgzf_block.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct bgzf_codec *codec;
    struct bgzf_frame frame;
    if (!codec)
        MUST(codec = bgzf_codec_new(0));
    if (bgzf_block_frame(data, size, &frame) != BGZF_OK)
        return 0;
    MUST(frame.size <= size && frame.size <= BGZF_MAX_BLOCK);
    MUST(frame.data_offset + BGZF_FOOTER <= frame.size && frame.inflated_size <= BGZF_MAX_BLOCK);
    uint8_t *block = exact_copy(data, frame.size), *out = must_alloc(frame.inflated_size);
    bgzf_block_inflate(codec, block, &frame, out);
    free(block);
    free(out);
    return 0;
}
