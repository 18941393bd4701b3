/* SPDX-License-Identifier: MIT */
/* Strings in the order of strcmp() (bytes unsigned) as numbers, by a code that is learned from a sample.
 * The prefix that all strings share costs nothing, and a character costs only as much as there are
 * different ones at its place. */
#ifndef TEXT_CODE_H
#define TEXT_CODE_H

#include <stddef.h>
#include <stdint.h>

struct text {
    const char *s;               /* ends after n bytes or at a NUL, whichever comes first */
    size_t n;
};

/* Most columns of a code, and most bytes of its prefix. */
enum { TEXT_COLUMNS = 64, TEXT_PREFIX = 255 };

/* Read-only once learned. Column i codes the byte at n_prefix + i:
 *
 *   key = sum of symbol(i) * weight[i],   weight[i] = weight[i-1] / radix[i]
 *
 * A byte that the sample did not have at its place takes the nearest symbol below it and, with that, the
 * highest key; nothing after that byte counts. */
struct text_code {
    uint64_t range;              /* keys are below it */
    size_t n_prefix, n_columns;
    uint64_t weight[TEXT_COLUMNS];
    uint8_t table[TEXT_COLUMNS]; /* which of code[] serves a column */
    char prefix[TEXT_PREFIX];
    uint16_t code[TEXT_COLUMNS][256];   /* symbol << 2 | what follows it */
};

/* The code for strings of which nothing is known. */
void text_code_init(struct text_code *code, uint64_t range);

/* The code for strings like those of the sample. If they teach nothing, the code that text_code_init()
 * gives. */
void text_code_learn(struct text_code *code, uint64_t range, const struct text *sample, size_t n);

/* The key of t. If a < b by strcmp(), then key(a) <= key(b). The *room keys from the returned one on
 * belong to this very string: the caller may add a number below *room. */
uint64_t text_code_key(const struct text_code *code, struct text t, uint64_t *room);

/* The same for callers that use only the first bits (at least one) of a 64-bit key and shift the rest out.
 * Keys made with different values of `bits` do not compare. */
uint64_t text_code_key_top(const struct text_code *code, struct text t, unsigned bits);

/* A code for strings that are mostly one of a few words. Keys are divided into slots of equal size:
 *
 *   | gap | word 0 | gap | word 1 | ... | gap |
 *
 * The slot of a word is left to what decides next. Any other string lies in a gap: first by how many bytes
 * it shares with the words on both sides, then by its bytes from where it differs from both. */
struct word_code {
    uint64_t slot;               /* keys of a slot */
    uint64_t step;               /* keys of a gap for each way in which a string may leave the two words */
    size_t n_words;              /* 0: no code */
    size_t longest;              /* bytes shared with a word count up to this many */
    char **words;                /* in ascending order */
    struct text_code rest;
};

/* Learns the words from the sample. *code must be zeroed, or made by an earlier call. Returns 1; 0 if
 * there is no code, because the sample is empty or has more than most_words different strings; -1 if there
 * is no code, because there is no memory. */
int word_code_learn(struct word_code *code, uint64_t range, const struct text *sample, size_t n, size_t most_words);
void word_code_free(struct word_code *code);

/* As text_code_key(). */
uint64_t word_code_key(const struct word_code *code, struct text t, uint64_t *room);

#endif
