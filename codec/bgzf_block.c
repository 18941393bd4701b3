/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <libdeflate.h>
#include "codec/bam_deflate.h"
#include "codec/bam_inflate.h"
#include "codec/bgzf_block.h"
#include "codec/block_crc.h"
#include "base/endian_io.h"

enum {
    GZIP_FIXED = 12,              /* gzip header, up to and with XLEN */
    FLAG_HEADER_CRC = 2, FLAG_EXTRA = 4, FLAG_NAME = 8, FLAG_COMMENT = 16,
};
_Static_assert(BGZF_HEADER + (int)BAM_DEFLATE_STORED + BGZF_FILL + BGZF_FOOTER <= BGZF_MAX_BLOCK,
               "a block that does not compress can be stored");

const uint8_t bgzf_block_eof[BGZF_EOF_SIZE] = {
    0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff, 6, 0, 'B', 'C', 2, 0, 27, 0, 3, 0,
    0, 0, 0, 0, 0, 0, 0, 0,
};

/* libdeflate's level for each of samtools' -l 0..9; htslib uses the same map. */
static const int codec_level[BGZF_LEVEL_MAX + 1] = {0, 1, 2, 3, 5, 6, 7, 8, 10, 12};

struct bgzf_codec {
    struct bam_deflate *ours;                    /* see our_effort(); NULL: libdeflate, or blocks are stored */
    struct libdeflate_compressor *deflate;       /* the other levels; NULL: `ours` is used, or blocks are stored */
    struct bam_inflate *inflate;                 /* made when the first block is inflated */
};

/* Most users run -l 1 or no -l, which is -l 6, so these levels have an encoder of our own. On the files of
 * doc/dev/tried.md, its output at -l 1 is at most 3 % larger than that of libdeflate's level 1; at the default level,
 * than that of libdeflate's level 7, which samtools uses without -l. For most files both levels take less time. Both
 * hold at the default level for most text, too; -l 1 takes longer for some text. The default level is also
 * smaller and faster than libdeflate's levels for -l 4 and 5. libdeflate's levels for -l 2 and 3 take twice the time of
 * our -l 1, and their output is larger for some data. */
static int our_effort(int level)
{
    enum { FIRST_DEFAULT = 4, LAST_DEFAULT = 6 };
    if (level == 1)
        return BAM_DEFLATE_FAST;
    return level < 0 || (level >= FIRST_DEFAULT && level <= LAST_DEFAULT) ? BAM_DEFLATE_DEFAULT : -1;
}

static int number_of(int level)
{
    return level == BGZF_LEVEL_TEXT_1 ? 1 : level > BGZF_LEVEL_MAX ? BGZF_LEVEL_MAX : level;
}

struct bgzf_codec *bgzf_codec_new(int level)
{
    struct bgzf_codec *codec = calloc(1, sizeof *codec);
    if (!codec)
        return NULL;
    int effort = our_effort(level);
    if (effort >= 0)
        codec->ours = bam_deflate_new(effort, false);
    else if (level > 0)
        codec->deflate = libdeflate_alloc_compressor(codec_level[number_of(level)]);
    if (codec->ours || codec->deflate || level == 0)
        return codec;
    bgzf_codec_free(codec);
    return NULL;
}

void bgzf_codec_free(struct bgzf_codec *codec)
{
    if (!codec)
        return;
    free(codec->ours);
    if (codec->deflate)
        libdeflate_free_compressor(codec->deflate);
    free(codec->inflate);
    free(codec);
}

struct bgzf_codec *bgzf_codec_of(struct bgzf_codec **codecs, int thread, int level)
{
    if (!codecs[thread])
        codecs[thread] = bgzf_codec_new(level);
    return codecs[thread];
}

void bgzf_codec_free_all(struct bgzf_codec **codecs, int n)
{
    for (int i = 0; codecs && i < n; i++)
        bgzf_codec_free(codecs[i]);
    free(codecs);
}

/* libdeflate does not report the size of a compressor. These sizes were measured with 1.14 and rounded up. */
size_t bgzf_codec_memory(int level)
{
    enum { DEFLATE = 704 << 10, DEFLATE_BEST = 9 << 20, FIRST_BEST = 8 };
    return level == 0 ? 0 : our_effort(level) >= 0 ? bam_deflate_memory()
         : number_of(level) < FIRST_BEST ? DEFLATE : DEFLATE_BEST;
}

/* Returns the value of the BC subfield in extra[xlen], or -1 if there is none. */
static int bc_subfield(const uint8_t *extra, uint32_t xlen)
{
    for (uint32_t at = 0; at + 4 <= xlen;) {
        uint32_t len = load_le16(extra + at + 2);
        if (at + 4 + len > xlen)
            return -1;
        if (extra[at] == 'B' && extra[at + 1] == 'C' && len == 2)
            return load_le16(extra + at + 4);
        at += 4 + len;
    }
    return -1;
}

/* Returns where the data begin in a block of `size` bytes that has more than the extra field: a name, a comment, or a
 * checksum of the header (RFC 1952, 2.3.1). Other flags do not announce fields. */
static uint32_t skip_fields(const uint8_t *p, uint32_t size, uint32_t at)
{
    for (int flag = FLAG_NAME; flag <= FLAG_COMMENT; flag <<= 1) {
        while (p[3] & flag && at < size && p[at])
            at++;
        at += !!(p[3] & flag);
    }
    return at + (p[3] & FLAG_HEADER_CRC ? 2 : 0);
}

enum bgzf_fault bgzf_block_frame(const uint8_t *p, size_t avail, struct bgzf_frame *frame)
{
    static const uint8_t magic[3] = {0x1f, 0x8b, 8};
    size_t seen = avail < sizeof magic ? avail : sizeof magic;
    if (memcmp(p, magic, seen) != 0)
        return BGZF_NOT_GZIP;
    if (avail < GZIP_FIXED)
        return BGZF_MORE;
    if (!(p[3] & FLAG_EXTRA))
        return BGZF_NOT_BGZF;
    uint32_t xlen = load_le16(p + 10);
    if (GZIP_FIXED + xlen + BGZF_FOOTER > BGZF_MAX_BLOCK)
        return BGZF_BAD_SIZE;                    /* BGZF_MAX_BLOCK bytes must always be enough */
    if (avail < GZIP_FIXED + xlen)
        return BGZF_MORE;
    int bc = bc_subfield(p + GZIP_FIXED, xlen);
    if (bc < 0)
        return BGZF_NOT_BGZF;
    frame->size = (uint32_t)bc + 1;
    frame->data_offset = GZIP_FIXED + xlen;
    if (p[3] != FLAG_EXTRA) {
        if (avail < frame->size)
            return BGZF_MORE;
        frame->data_offset = skip_fields(p, frame->size, frame->data_offset);
    }
    if (frame->size < frame->data_offset + BGZF_FOOTER)
        return BGZF_BAD_SIZE;
    if (avail < frame->size)
        return BGZF_MORE;
    frame->inflated_size = load_le32(p + frame->size - 4);
    return frame->inflated_size <= BGZF_MAX_BLOCK ? BGZF_OK : BGZF_BAD_ISIZE;
}

static bool is_followed(const uint8_t *p, size_t n)
{
    struct bgzf_frame frame, next;
    if (bgzf_block_frame(p, n, &frame) != BGZF_OK)
        return false;
    enum bgzf_fault fault = bgzf_block_frame(p + frame.size, n - frame.size, &next);
    return fault == BGZF_OK || fault == BGZF_MORE;
}

size_t bgzf_block_find(const uint8_t *bytes, size_t n)
{
    const uint8_t *end = bytes + (n < BGZF_MAX_BLOCK ? n : BGZF_MAX_BLOCK);
    for (const uint8_t *p = bytes; p < end && (p = memchr(p, bgzf_block_eof[0], (size_t)(end - p))); p++)
        if (is_followed(p, n - (size_t)(p - bytes)))
            return (size_t)(p - bytes);
    return n;
}

/* Returns why data do not inflate to the size that the block states. They may inflate to another size and have the
 * block's CRC-32: then only that size is wrong. */
static enum bgzf_fault fault_of_deflate(const uint8_t *p, const struct bgzf_frame *frame)
{
    const uint8_t *footer = p + frame->size - BGZF_FOOTER;
    struct libdeflate_decompressor *inflate = libdeflate_alloc_decompressor();
    uint8_t *out = malloc(BGZF_MAX_BLOCK);
    size_t n;
    bool whole = inflate && out
        && libdeflate_deflate_decompress(inflate, p + frame->data_offset, (size_t)(footer - p) - frame->data_offset,
                                         out, BGZF_MAX_BLOCK, &n) == LIBDEFLATE_SUCCESS
        && n != frame->inflated_size && block_crc(out, (uint32_t)n) == load_le32(footer);
    free(out);
    if (inflate)
        libdeflate_free_decompressor(inflate);
    return whole ? BGZF_BAD_ISIZE : BGZF_BAD_DEFLATE;
}

enum bgzf_fault bgzf_block_inflate(struct bgzf_codec *codec, const uint8_t *p,
                                   const struct bgzf_frame *frame, uint8_t *out)
{
    const uint8_t *footer = p + frame->size - BGZF_FOOTER;
    if (!codec || (!codec->inflate && !(codec->inflate = bam_inflate_new(false))))
        return BGZF_NO_MEMORY;
    if (bam_inflate(codec->inflate, p + frame->data_offset, (size_t)(footer - p) - frame->data_offset,
                    out, frame->inflated_size) < 0)
        return fault_of_deflate(p, frame);
    if (block_crc(out, frame->inflated_size) != load_le32(footer))
        return BGZF_BAD_CRC;
    return BGZF_OK;
}

bool bgzf_block_claims(const uint8_t *block, uint32_t length, const uint8_t *data, uint32_t n)
{
    const uint8_t *footer = block + length - BGZF_FOOTER;
    return load_le32(footer + 4) == n && load_le32(footer) == block_crc(data, n);
}

uint8_t *bgzf_block_stored_data(const struct bgzf_codec *codec, uint8_t *out)
{
    return codec->ours || codec->deflate ? NULL : out + BGZF_HEADER + BAM_DEFLATE_STORED;
}

uint32_t bgzf_block_deflate(struct bgzf_codec *codec, const uint8_t *data, uint32_t n, uint8_t *out)
{
    enum { ROOM = BGZF_MAX_BLOCK - BGZF_HEADER - BGZF_FOOTER };
    size_t size = 0;
    if (codec->ours)
        size = bam_deflate(codec->ours, data, n, out + BGZF_HEADER, ROOM);
    else if (codec->deflate)
        size = libdeflate_deflate_compress(codec->deflate, data, n, out + BGZF_HEADER, ROOM);
    if (size == 0)
        size = bam_deflate_store(data, n, out + BGZF_HEADER, ROOM);
    uint8_t *footer = out + BGZF_HEADER + size;
    memcpy(out, bgzf_block_eof, BGZF_HEADER);
    store_le16(out + BGZF_HEADER - 2, (uint16_t)(BGZF_HEADER + size + BGZF_FOOTER - 1));
    store_le32(footer, block_crc(data, n));
    store_le32(footer + 4, n);
    return (uint32_t)(BGZF_HEADER + size + BGZF_FOOTER);
}

const char *bgzf_fault_text(enum bgzf_fault fault)
{
#define FAULT_TEXT(fault, text) [fault] = (text),
    static const char *const texts[] = {BGZF_FAULTS(FAULT_TEXT)};
    return (size_t)fault < sizeof texts / sizeof *texts ? texts[fault] : "unknown fault";
}
