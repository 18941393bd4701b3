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

#endif
