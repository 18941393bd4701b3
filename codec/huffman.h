/* SPDX-License-Identifier: MIT */
/* Huffman codes as DEFLATE needs them: canonical, complete, of limited length (RFC 1951 section 3.2.2).
 * Other functions that depend on the symbols of DEFLATE are here, too. */
#ifndef HUFFMAN_H
#define HUFFMAN_H

#include <stdbool.h>
#include <stdint.h>

enum {
    HUFFMAN_MAX_SYMBOLS = 288,
    HUFFMAN_MAX_BITS = 15,
    HUFFMAN_MAX_COUNT = 65535,
    /* RFC 1951 sections 3.2.5 and 3.2.7 */
    HUFFMAN_N_LITLEN = 286,
    HUFFMAN_N_DIST = 30,
    HUFFMAN_N_PRECODE = 19,
    HUFFMAN_MAX_LEN = 258,
};

/* A code word: its bits, the first one to be written lowest, and its length << 16. 0: the symbol has no word. */
typedef uint32_t code;
static inline uint32_t code_bits(code c) { return c & 0xffff; }
static inline uint32_t code_len(code c) { return c >> 16; }

/* Makes a code for n symbols that occur freq[] times, at most HUFFMAN_MAX_COUNT times each. No word is
 * longer than limit bits. If the limit cuts nothing, the code is optimal. At least two symbols get a word,
 * so that the code is complete: some decoders accept only complete codes. */
void huffman_code(code *codes, const uint32_t *freq, uint32_t n, uint32_t limit);

/* The code lengths, run-length coded, that come before the data (RFC 1951 section 3.2.7). */
struct huffman_header {
    uint32_t n_litlen, n_dist, n_precode, n_items;
    uint16_t item[HUFFMAN_N_LITLEN + HUFFMAN_N_DIST + 1];        /* symbol | extra bits << 5 */
    code precode[HUFFMAN_N_PRECODE];
};
extern const uint8_t huffman_precode_order[HUFFMAN_N_PRECODE];
extern const uint8_t huffman_precode_extra[HUFFMAN_N_PRECODE];   /* number of extra bits */

/* Makes the header for the two codes. Returns its size in bits, including the three bits of the block's header. */
uint32_t huffman_header(struct huffman_header *h, const code *litlen, const code *dist);

/* A code as a decoder needs it: the words from the shortest to the longest, words of one length in the order of
 * their symbols. */
struct huffman_words {
    uint16_t first[HUFFMAN_MAX_BITS + 2];        /* place of the first word of a length; then one past the last word */
    uint16_t sorted[HUFFMAN_MAX_SYMBOLS];        /* symbols in the order of their words, then the symbols that have no
                                                  * word */
    uint16_t word[HUFFMAN_MAX_SYMBOLS];          /* the first bit lowest */
};

/* Makes the code of n > 0 symbols from lens[n], the lengths of their code words; length 0: the symbol has no word.
 * Returns 0, or -1 for a code that is not allowed. As in zlib, an incomplete code is allowed only if may_be_single is
 * set and the code has no word, or a single word of one bit. */
int huffman_words(struct huffman_words *c, const uint8_t *lens, uint32_t n, bool may_be_single);

/* ---- symbols of matches ---- */

static inline uint32_t log2_floor(uint32_t v)
{
    return 31u - (uint32_t)__builtin_clz(v);
}

/* RFC 1951 section 3.2.5: two symbols per power of two; distances 1-4 have one each. */
static inline uint32_t dist_extra_bits(uint32_t dist)
{
    uint32_t log = log2_floor((dist - 1) | 2);
    return log - 1;
}

static inline uint32_t dist_symbol_extra_bits(uint32_t symbol)
{
    return symbol < 4 ? 0 : symbol / 2 - 1;
}

static inline uint32_t dist_symbol(uint32_t dist)
{
    uint32_t extra = dist_extra_bits(dist);
    return 2 * extra + ((dist - 1) >> extra);
}

/* Four symbols per power of two; lengths 3-10 have one each, and 258 is an exception. */
static inline uint32_t len_extra_bits(uint32_t len)
{
    return len == HUFFMAN_MAX_LEN ? 0 : log2_floor((len - 3) | 4) - 2;
}

static inline uint32_t len_symbol(uint32_t len)
{
    uint32_t extra = len_extra_bits(len);
    return len == HUFFMAN_MAX_LEN ? 285 : 257 + 4 * extra + ((len - 3) >> extra);
}

#endif
