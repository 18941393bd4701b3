/* SPDX-License-Identifier: MIT */
/* One BGZF block (SAMv1 section 4.1; RFC 1951, RFC 1952): its frame, inflate, deflate, CRC-32. Serial, no
 * I/O, no threads.
 *
 *   1f 8b 08 04 | mtime xfl os | xlen | ..BC 02 00 bsize-1.. | deflate data | crc32 isize
 *   <----------- gzip header, 12 bytes + xlen -------------> |              | <-- 8 -->
 *
 * Other flags than 04 may be set as well. Then a name, a comment or a checksum may lie before the data. */
#ifndef BGZF_BLOCK_H
#define BGZF_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/endian_io.h"

enum {
    BGZF_MAX_BLOCK = 65536,       /* largest block, compressed or not (section 4.1) */
    BGZF_HEADER = 18,             /* header bytes of a block that we write */
    BGZF_FOOTER = 8,
    BGZF_FILL = 0xff00,           /* most bytes that we put into one block: even stored, they fit */
    BGZF_EOF_SIZE = 28,
    BGZF_LEVEL_MAX = 9,
    BGZF_LEVEL_DEFAULT = -1,
    BGZF_LEVEL_TEXT_1 = 16,       /* level 1 of data that are not BAM */
};

/* The empty block that ends a BGZF file (section 4.1.2). */
extern const uint8_t bgzf_block_eof[BGZF_EOF_SIZE];

struct bgzf_frame {
    uint32_t size;                /* size of the complete block, header and footer included */
    uint32_t data_offset;         /* where the deflate data begin */
    uint32_t inflated_size;
};

/* The faults of a block, with words for an error message. BGZF_MORE: the block continues after the available bytes. */
#define BGZF_FAULTS(X) \
    X(BGZF_OK, "no fault") \
    X(BGZF_MORE, "the file ends inside a block (truncated file?)") \
    X(BGZF_NOT_GZIP, "no BGZF block begins here") \
    X(BGZF_NOT_BGZF, "gzip data without BGZF block sizes (compressed with gzip, not bgzip?)") \
    X(BGZF_BAD_SIZE, "the block sizes contradict each other") \
    X(BGZF_BAD_ISIZE, "the size that the block gives for its data (ISIZE) is wrong") \
    X(BGZF_BAD_DEFLATE, "the compressed data are damaged") \
    X(BGZF_BAD_CRC, "CRC-32 of the block is wrong: the data are damaged") \
    X(BGZF_NO_MEMORY, "out of memory")

#define BGZF_FAULT_NUMBER(fault, text) fault,
enum bgzf_fault { BGZF_FAULTS(BGZF_FAULT_NUMBER) };

/* Returns the fault in words, for an error message. The string is constant. */
const char *bgzf_fault_text(enum bgzf_fault fault);

/* Reads the frame of the block at p, where avail bytes are available. Never returns BGZF_MORE if
 * avail >= BGZF_MAX_BLOCK. */
enum bgzf_fault bgzf_block_frame(const uint8_t *p, size_t avail, struct bgzf_frame *frame);

/* Returns whether the block at p, which has this frame, has the header that all writers write and every reader
 * accepts. */
static inline bool bgzf_block_is_plain(const uint8_t *p, const struct bgzf_frame *frame)
{
    return frame->data_offset == BGZF_HEADER && p[3] == bgzf_block_eof[3];
}

/* Returns whether the block's footer states that it holds data[n]: by size and CRC-32. */
bool bgzf_block_claims(const uint8_t *block, uint32_t length, const uint8_t *data, uint32_t n);

/* Guesses where the first block begins in bytes[n] of a file: at a block that is followed by another one or by the end
 * of the bytes. Data may look like the head of one block, but hardly like two. Returns n if no block begins among the
 * first BGZF_MAX_BLOCK bytes. */
size_t bgzf_block_find(const uint8_t *bytes, size_t n);

/* Guesses where the block at p ends. The guess is right if BC is where all writers put it. Returns avail if the next
 * header is not available, or p is not a block. */
static inline size_t bgzf_block_guess_end(const uint8_t *p, size_t avail)
{
    size_t end = avail < BGZF_HEADER ? avail : (size_t)load_le16(p + BGZF_HEADER - 2) + 1;
    return end + BGZF_HEADER <= avail ? end : avail;
}

/* The state of inflating and deflating. A codec serves one thread at a time. */
struct bgzf_codec;

/* Makes a codec. level: 0..9 as with samtools' -l (0 stores), BGZF_LEVEL_DEFAULT or BGZF_LEVEL_TEXT_1. Returns NULL if
 * there is no memory. */
struct bgzf_codec *bgzf_codec_new(int level);
void bgzf_codec_free(struct bgzf_codec *codec);

/* Returns the codec of a thread, from an array with room for one codec per thread. The codec is made when the thread
 * first needs it, so that threads make their codecs at the same time. Returns NULL if out of memory. */
struct bgzf_codec *bgzf_codec_of(struct bgzf_codec **codecs, int thread, int level);
void bgzf_codec_free_all(struct bgzf_codec **codecs, int n);

/* Returns the bytes that a codec takes, rounded up. A codec that has inflated takes bam_inflate_memory() more. */
size_t bgzf_codec_memory(int level);

/* Inflates the block at p into out[frame->inflated_size] and checks its CRC-32. Returns BGZF_NO_MEMORY if codec is
 * NULL. */
enum bgzf_fault bgzf_block_inflate(struct bgzf_codec *codec, const uint8_t *p,
                                   const struct bgzf_frame *frame, uint8_t *out);

/* Makes one block of data[n], n <= BGZF_FILL, in out[BGZF_MAX_BLOCK]. Returns the size of the block. At
 * level 0 the data may already lie at bgzf_block_stored_data(out); then they are not moved. */
uint32_t bgzf_block_deflate(struct bgzf_codec *codec, const uint8_t *data, uint32_t n, uint8_t *out);

/* Returns where the data of a stored block lie in out, or NULL if the codec compresses. */
uint8_t *bgzf_block_stored_data(const struct bgzf_codec *codec, uint8_t *out);

#endif
