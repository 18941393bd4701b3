/* SPDX-License-Identifier: MIT */
/* Strings in the order of strcmp (bytes unsigned) as numbers, with a code that
 * is learned from a sample: the prefix that all have costs nothing, and a
 * character costs only as much as there are different ones at its place. */
#ifndef TEXT_CODE_H
#define TEXT_CODE_H

#include <stddef.h>
#include <stdint.h>

struct text {
    const char *s;               /* ends after n bytes or at a NUL, whichever is first */
    size_t n;
};

enum { TEXT_COLUMNS = 64, TEXT_PREFIX = 255 };

/* Read-only once learned. Column i codes the byte at n_prefix + i:
 *
 *   key = sum of symbol(i) * weight[i],   weight[i] = weight[i-1] / radix[i]
 *
 * A byte that the sample did not have at its place takes the nearest symbol
 * below it and then the highest key there; nothing after it counts. */
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

/* The code for strings like these; as text_code_init() where they teach nothing. */
void text_code_learn(struct text_code *code, uint64_t range, const struct text *sample, size_t n);

/* a < b in strcmp order gives key(a) <= key(b). *room keys from the returned one
 * on belong to this very string: the caller may add a number below it. */
uint64_t text_code_key(const struct text_code *code, struct text t, uint64_t *room);

/* The same, for those who use only the first bits (at least one) of a 64-bit key and shift the
 * rest out. Keys made with different bits do not compare. */
uint64_t text_code_key_top(const struct text_code *code, struct text t, unsigned bits);

/* For strings that are mostly one of a few. Keys by slot, all of one size:
 *
 *   | gap | word 0 | gap | word 1 | ... | gap |
 *
 * A word leaves its slot to what decides next. Any other string is in a gap, by how far it goes
 * along with the words on both sides of it, then by its bytes from where it leaves both. */
struct word_code {
    uint64_t slot;               /* keys of one */
    uint64_t step;               /* keys in a gap for one way of leaving its words */
    size_t n_words;              /* 0: no code */
    size_t longest;              /* no more bytes along with a word are told apart */
    char **words;                /* ascending */
    struct text_code rest;
};

/* The code for the strings of the sample: 1; 0: none, as it has no string or more than
 * most_words different ones; -1: none, as there was no memory. code: zeroed, or what this call gave. */
int word_code_learn(struct word_code *code, uint64_t range, const struct text *sample, size_t n, size_t most_words);
void word_code_free(struct word_code *code);

/* As text_code_key(). */
uint64_t word_code_key(const struct word_code *code, struct text t, uint64_t *room);

#endif
