/* SPDX-License-Identifier: MIT */
/* Huffman codes as DEFLATE wants them: canonical, complete, of limited length
 * (RFC 1951 section 3.2.2). */
#ifndef HUFFMAN_H
#define HUFFMAN_H

#include <stdint.h>

enum {
    HUFFMAN_MAX_SYMBOLS = 288,
    HUFFMAN_MAX_BITS = 15,
    HUFFMAN_MAX_COUNT = 65535,
};

/* A code word: its bits, the first to go out lowest, and its length << 16. 0: none. */
typedef uint32_t code;
static inline uint32_t code_bits(code c) { return c & 0xffff; }
static inline uint32_t code_len(code c) { return c >> 16; }

/* A code for symbols that occur freq[n] times, none longer than limit; best but
 * for the limit. At least two symbols get a word, so that the code is complete:
 * not all decoders take another. */
void huffman_code(code *codes, const uint32_t *freq, int n, uint32_t limit);

#endif
