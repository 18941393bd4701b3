/* SPDX-License-Identifier: MIT */
/* One BGZF block (SAMv1 section 4.1; RFC 1951, RFC 1952): its frame, inflate,
 * deflate, CRC-32. Serial, no I/O, no threads.
 *
 *   1f 8b 08 04 | mtime xfl os | xlen | ..BC 02 00 bsize-1.. | deflate data | crc32 isize
 *   <----------- gzip header, 12 bytes + xlen -------------> |              | <-- 8 -->  */
#ifndef BGZF_BLOCK_H
#define BGZF_BLOCK_H

#include <stddef.h>
#include <stdint.h>

enum {
    BGZF_MAX_BLOCK = 65536,       /* largest block, compressed or not (section 4.1) */
    BGZF_HEADER = 18,             /* header bytes of a block we write */
    BGZF_FOOTER = 8,
    BGZF_FILL = 0xff00,           /* bytes we put into one block: even stored it fits */
    BGZF_EOF_SIZE = 28,
    BGZF_LEVEL_MAX = 9,
    BGZF_LEVEL_DEFAULT = -1,
};

/* The empty block that closes a BGZF file (section 4.1.2). */
extern const uint8_t bgzf_block_eof[BGZF_EOF_SIZE];

struct bgzf_frame {
    uint32_t size;                /* whole block, header and footer included */
    uint32_t data_offset;         /* where the deflate data begin */
    uint32_t inflated_size;
};

enum bgzf_fault {
    BGZF_OK = 0,
    BGZF_MORE,                    /* the block does not end within the bytes at hand */
    BGZF_NOT_GZIP,
    BGZF_NOT_BGZF,
    BGZF_BAD_SIZE,
    BGZF_BAD_DEFLATE,
    BGZF_BAD_CRC,
    BGZF_NO_MEMORY,
};

const char *bgzf_fault_text(enum bgzf_fault fault);

/* Reads the frame of the block at p, of which avail bytes are at hand. It is never
 * BGZF_MORE if avail >= BGZF_MAX_BLOCK. */
enum bgzf_fault bgzf_block_frame(const uint8_t *p, size_t avail, struct bgzf_frame *frame);

/* A codec serves one thread at a time. */
struct bgzf_codec;

/* level: 0..9 as samtools' -l (0 stores), or BGZF_LEVEL_DEFAULT; NULL when memory runs out. */
struct bgzf_codec *bgzf_codec_new(int level);
void bgzf_codec_free(struct bgzf_codec *codec);

/* Bytes that a codec takes, rounded up; one that inflates takes bam_inflate_memory() more. */
size_t bgzf_codec_memory(int level);

/* Inflates the block at p into out[frame->inflated_size] and checks its CRC-32. */
enum bgzf_fault bgzf_block_inflate(struct bgzf_codec *codec, const uint8_t *p,
                                   const struct bgzf_frame *frame, uint8_t *out);

/* Makes one block of data[n], n <= BGZF_FILL, in out[BGZF_MAX_BLOCK]; returns its size.
 * At level 0 the data may already lie at bgzf_block_stored_data(out): then they are not moved. */
uint32_t bgzf_block_deflate(struct bgzf_codec *codec, const uint8_t *data, uint32_t n, uint8_t *out);

/* Where the data of a stored block lie in out; NULL if the codec compresses. */
uint8_t *bgzf_block_stored_data(const struct bgzf_codec *codec, uint8_t *out);

#endif
