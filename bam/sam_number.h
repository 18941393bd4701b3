/* SPDX-License-Identifier: MIT */
/* Numbers in a line of SAM, as samtools 1.24 reads them: a sign may precede them, and no digit at all is 0. Each
 * returns the value and sets *p behind what it took, which the caller looks at. The text must end with a NUL. */
#ifndef SAM_NUMBER_H
#define SAM_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Reads digits. Beyond the limit, which is below 2^63, *over becomes true and the value is the limit. */
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

/* From -limit - 1 to limit. */
static inline int64_t sam_number_signed(const char **p, int64_t limit, bool *over)
{
    bool negative = **p == '-';
    if (!negative)
        return (int64_t)sam_number_unsigned(p, (uint64_t)limit, over);
    ++*p;
    return -(int64_t)sam_number_digits(p, (uint64_t)limit + 1, over);
}

/* FLAG: decimal, or hexadecimal behind 0x, or octal behind 0; without a sign. */
uint64_t sam_number_flag(const char **p, bool *over);

/* As strtod() in the C locale. */
double sam_number_real(const char **p);

#endif
