/* SPDX-License-Identifier: MIT */
/* Read names in natural order: the order itself, and keys for it made with a
 * shape that is learned from a sample.
 *
 *   A00123:45:HFYKC:1:1101:20132:4711
 *   | prefix       || fields: a number and the literal behind it |  then the end or a tail
 *
 * Natural order reads a name as a row of tokens, each a non-digit byte or a
 * whole run of digits. Runs compare by value (leading zeros do not count), a run
 * against a byte by its first digit, everything else by byte, unsigned. */
#ifndef NAME_SHAPE_H
#define NAME_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "order/text_code.h"

enum {
    SHAPE_FIELDS = 16,
    SHAPE_PREFIX = 255,          /* longest names are of 254 bytes */
    SHAPE_LITERALS = 256,
    TAIL_DIGITS = 15,            /* longest number with a symbol of its own */
};

struct name_field {
    uint64_t radix;              /* the number is below it, if the name is in shape */
    uint64_t weight;             /* keys per value of the number */
    const char *literal;         /* in literals[] */
    size_t n_literal;
};

/* Read-only once learned. */
struct name_shape {
    uint64_t range;              /* keys are below it */
    size_t n_prefix, n_fields;
    bool has_tail;               /* in shape: something may follow the last field */
    uint64_t room;               /* keys for what follows the last field */
    struct name_field field[SHAPE_FIELDS];
    char prefix[SHAPE_PREFIX];   /* empty, or ends in a non-digit: no number is split */
    char literals[SHAPE_LITERALS];
    /* The tail is a row of symbols of tail_bits each: the end, a byte, or "a number of
     * L digits", which is followed by its value. symbol[]: symbol << 1 | (byte is above it). */
    unsigned tail_bits, tail_digits;
    uint16_t number_symbol;
    uint16_t symbol[256];
};

void name_shape_init(struct name_shape *shape, uint64_t range);
void name_shape_learn(struct name_shape *shape, uint64_t range, const struct text *sample, size_t n);

/* Whether all these names have the same number of fields, at least one, and no tail. */
bool name_shape_regular(const struct text *sample, size_t n);

/* The key of a NUL-ended name whose buffer has size bytes; sub is the left-aligned
 * key of what decides between records of the same name. */
uint64_t name_shape_key(const struct name_shape *shape, const char *name, size_t size, uint64_t sub);

/* < 0, 0, > 0. The sizes are those of the buffers, NUL included. */
int name_natural_compare(const char *a, size_t a_size, const char *b, size_t b_size);

/* How a prefix that ends in a non-digit stands to a name: 0, and in *rest what follows
 * it, when the name begins with it; else < 0 or > 0. */
int name_natural_prefix(const char *prefix, const char *name, const char **rest);

#endif
