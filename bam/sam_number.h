/* SPDX-License-Identifier: MIT */
/* Numbers in a line of SAM, as samtools 1.24 reads them: a sign may precede them, and no digits means 0. Each function
 * returns the value and moves *p past the number; the caller checks the next character. The text must end with a
 * NUL. */
#ifndef SAM_NUMBER_H
#define SAM_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Reads digits. A value above the limit, which is below 2^63, becomes the limit and sets *over. */
static inline uint64_t sam_number_digits(const char **p, uint64_t limit, bool *over)
{
    uint64_t n = 0;
    unsigned digit;
    for (; (digit = (unsigned)(unsigned char)**p - '0') <= 9; ++*p)
        n = n < UINT64_MAX / 10 ? 10 * n + digit : UINT64_MAX;
    if (n <= limit)
        return n;
    *over = true;
    return limit;
}

static inline uint64_t sam_number_unsigned(const char **p, uint64_t limit, bool *over)
{
    *p += **p == '+';
    return sam_number_digits(p, limit, over);
}

/* Reads a number from -limit - 1 to limit. */
static inline int64_t sam_number_signed(const char **p, int64_t limit, bool *over)
{
    bool negative = **p == '-';
    if (!negative)
        return (int64_t)sam_number_unsigned(p, (uint64_t)limit, over);
    ++*p;
    return -(int64_t)sam_number_digits(p, (uint64_t)limit + 1, over);
}

/* Reads FLAG: decimal, hexadecimal after 0x, or octal after 0; without a sign. */
uint64_t sam_number_flag(const char **p, bool *over);

/* As strtod() in the C locale. */
double sam_number_real(const char **p);

#endif
