/* SPDX-License-Identifier: MIT */
/* Turns strings into numbers that sort as the strings do: by strcmp() (bytes unsigned) or in natural order
 * (name_natural.h). The code is learned from a sample.
 *
 *   A00123:45:HFYKC:1:1101:20132:4711
 *   | prefix        || a column per token: 1 | : | 1101 | : | 20132 | : | 4711 | end
 *
 * The common prefix of all strings costs nothing, and a column costs only the bits for its different tokens. */
#ifndef TEXT_CODE_H
#define TEXT_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
    const char *s;               /* ends after n bytes or at a NUL, whichever comes first */
    size_t n;
};

/* The maximum number of columns of a code, and of bytes of its prefix. */
enum { TEXT_COLUMNS = 64, TEXT_PREFIX = 255 };

/* The tokens that the sample had at one place, as symbols 0 .. n-1 in their order. A token is a byte, the
 * end of the string or, in natural order, a number. */
struct text_column {
    uint64_t weight;             /* keys per symbol */
    uint64_t numbers;            /* number of symbols for numbers; they follow those of the bytes below '0' */
    /* true: a symbol stands for all numbers of one length, and the value follows; false: for one value */
    bool by_length;
    uint16_t code[256];          /* for a byte: symbols of bytes below it << 1 | it has a symbol itself */
};

/* Read-only once learned. The key is the sum of symbol * weight over the columns; the weight of a column is that of the
 * column before, divided by its number of symbols. A token without a symbol gets the highest key below the next symbol,
 * and the rest of the string is ignored. */
struct text_code {
    uint64_t range;              /* keys are below it */
    bool natural;                /* for strings that are NUL-ended and at most TEXT_PREFIX bytes long */
    size_t n_prefix, n_columns;
    char prefix[TEXT_PREFIX + 1];
    struct text_column column[TEXT_COLUMNS];
};

/* The code for strings of any form. */
void text_code_init(struct text_code *code, bool natural, uint64_t range);

/* The code for strings like those of the sample. If nothing can be learned from them, the code is that of
 * text_code_init(). */
void text_code_learn(struct text_code *code, bool natural, uint64_t range, const struct text *sample, size_t n);

/* Returns whether a code of this range distinguishes all strings of the sample, with room for flags. */
bool text_code_fits(bool natural, uint64_t range, const struct text *sample, size_t n);

/* The key of t. If a < b, then key(a) <= key(b). The *room keys from the returned one on belong to this
 * very string: the caller may add a number below *room. */
uint64_t text_code_key(const struct text_code *code, struct text t, uint64_t *room);

/* Like text_code_key(), but not in natural order, for callers that use only the first bits (at least one) of a 64-bit
 * key and shift the rest out. Keys made with different values of `bits` cannot be compared. */
uint64_t text_code_key_top(const struct text_code *code, struct text t, unsigned bits);

/* A code for strings that are mostly one of a few words. Keys are divided into slots of equal size:
 *
 *   | gap | word 0 | gap | word 1 | ... | gap |
 *
 * The slot of a word is left to the next criterion. Any other string is in a gap: first by the number of bytes that it
 * shares with the words on both sides, then by its bytes from where it differs from both. */
struct word_code {
    uint64_t slot;               /* keys of a slot */
    uint64_t step;               /* keys of a gap for each combination of bytes shared with the two words */
    size_t n_words;              /* 0: no code */
    size_t longest;              /* at most this many bytes shared with a word are counted */
    char **words;                /* in ascending order */
    struct text_code rest;
};

/* Learns the words from the sample. *code must be zero-initialised. Returns 1; 0 if there is no code because the sample
 * is empty or has more than most_words different strings; -1 if there is no code because memory ran out. */
int word_code_learn(struct word_code *code, uint64_t range, const struct text *sample, size_t n, size_t most_words);
void word_code_free(struct word_code *code);

/* Like text_code_key(). */
uint64_t word_code_key(const struct word_code *code, struct text t, uint64_t *room);

#endif
