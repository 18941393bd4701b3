/* SPDX-License-Identifier: MIT */
/* Read names in natural order: the comparison, and keys made with a shape that is learned from a sample.
 *
 *   A00123:45:HFYKC:1:1101:20132:4711
 *   | prefix       || fields: a number and the literal behind it |  then the end or a tail
 *
 * Natural order reads a name as a row of tokens: each is a non-digit byte or a whole run of digits. Two
 * runs compare by value (leading zeros do not count), a run and a byte by the first digit of the run.
 * Everything else compares by byte, unsigned. */
#ifndef NAME_SHAPE_H
#define NAME_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "order/text_code.h"

enum {
    SHAPE_FIELDS = 16,
    SHAPE_PREFIX = 255,          /* the longest names have 254 bytes */
    SHAPE_LITERALS = 256,
    TAIL_DIGITS = 15,            /* longest number that has a symbol of its own */
};

struct name_field {
    uint64_t radix;              /* in a name of this shape, the number is below it */
    uint64_t weight;             /* keys per value of the number */
    const char *literal;         /* points into literals[] */
    size_t n_literal;
};

/* Read-only once learned. */
struct name_shape {
    uint64_t range;              /* keys are below it */
    size_t n_prefix, n_fields;
    bool has_tail;               /* names of this shape may have something behind the last field */
    uint64_t room;               /* keys left for what follows the last field */
    struct name_field field[SHAPE_FIELDS];
    char prefix[SHAPE_PREFIX];   /* empty, or ends in a non-digit, so that no number is split */
    char literals[SHAPE_LITERALS];
    /* The tail is a row of symbols of tail_bits each. A symbol is the end, a byte, or "a number of L
     * digits", which its value follows. symbol[] holds symbol << 1 | (the byte is above the symbol). */
    unsigned tail_bits, tail_digits;
    uint16_t number_symbol;
    uint16_t symbol[256];
};

/* Prepares the shape for names of which nothing is known. Keys will be below range. */
void name_shape_init(struct name_shape *shape, uint64_t range);
/* Learns the shape from n names. If they teach nothing, leaves what name_shape_init() gives. */
void name_shape_learn(struct name_shape *shape, uint64_t range, const struct text *sample, size_t n);

/* Whether all these names have the same number of fields, at least one, and no tail. */
bool name_shape_regular(const struct text *sample, size_t n);

/* Makes the key of a NUL-ended name; its buffer has size bytes. sub is the left-aligned key of what
 * decides between records of the same name. */
uint64_t name_shape_key(const struct name_shape *shape, const char *name, size_t size, uint64_t sub);

/* Compares two names in natural order: < 0, 0 or > 0. The sizes are those of the buffers, NUL included. */
int name_natural_compare(const char *a, size_t a_size, const char *b, size_t b_size);

/* Compares a prefix that ends in a non-digit with a name, in natural order. Returns 0 if the name begins
 * with the prefix, and sets *rest to what follows it; else returns < 0 or > 0. */
int name_natural_prefix(const char *prefix, const char *name, const char **rest);

#endif
