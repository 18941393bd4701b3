/* SPDX-License-Identifier: MIT */
/* Natural order reads a name as a row of tokens: each is a non-digit byte or a complete run of digits. Two runs compare
 * by value (leading zeros are ignored), a run and a byte by the first digit of the run, bytes as unsigned numbers. */
#ifndef NAME_NATURAL_H
#define NAME_NATURAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A number with at most this many significant digits has an exact value. */
enum { NATURAL_DIGITS = 18 };

static inline bool natural_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

/* Reads the number at *s, which ends at a character that is not a digit, and moves *s past it. *digits is the number of
 * significant digits; with more than NATURAL_DIGITS of them the value must not be used. */
static inline uint64_t natural_number(const char **s, unsigned *digits)
{
    const char *p = *s;
    while (*p == '0')
        p++;
    const char *first = p;
    uint64_t value = 0;
    for (; natural_digit(*p); p++)
        value = value * 10 + (uint64_t)(*p - '0');
    *digits = (unsigned)(p - first);
    *s = p;
    return value;
}

/* Compares two names: returns < 0, 0 or > 0. */
int name_natural_compare(const char *a, const char *b);

/* Compares a prefix that ends in a non-digit with a name. Returns 0 if the name begins with the prefix, and sets *rest
 * to the text after it; otherwise returns < 0 or > 0. */
int name_natural_prefix(const char *prefix, const char *name, const char **rest);

#endif
