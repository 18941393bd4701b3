/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "bam/sam_number.h"
#include "base/ascii.h"

enum { FLAG_MAX = 0xffff };

/* The value of a digit; a value of at least the base: not a digit. */
static unsigned digit_value(char c)
{
    if (ascii_is_digit(c))
        return (unsigned)(c - '0');
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? (unsigned)(lower - 'a') + 10 : 16;
}

uint64_t sam_number_flag(const char **p, bool *over)
{
    if (**p != '0')
        return **p >= '1' && **p <= '9' ? sam_number_digits(p, FLAG_MAX, over) : 0;
    bool hex = ((*p)[1] | 0x20) == 'x' && digit_value((*p)[2]) < 16;
    unsigned base = hex ? 16 : 8, digit;
    uint64_t n = 0;
    for (*p += hex ? 2 : 0; (digit = digit_value(**p)) < base; ++*p)
        n = n <= FLAG_MAX ? n * base + digit : n;
    if (n <= FLAG_MAX)
        return n;
    *over = true;
    return FLAG_MAX;
}

/* Powers of ten that a double holds exactly. */
static const double tens[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                              1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
enum { MOST_TENS = sizeof tens / sizeof *tens - 1, MOST_DIGITS = 15 };

/* Takes digits, and adds their number to *n. */
static const char *take_digits(const char *p, uint64_t *value, unsigned *n)
{
    for (; ascii_is_digit(*p); p++, ++*n)
        *value = 10 * *value + (uint64_t)(*p - '0');
    return p;
}

/* Takes the exponent at p; a letter without digits after it is left. */
static const char *take_exponent(const char *p, int *exponent)
{
    uint64_t value = 0;
    unsigned n = 0;
    if ((*p | 0x20) != 'e')
        return p;
    bool negative = p[1] == '-';
    const char *q = p + 1 + (p[1] == '-' || p[1] == '+');
    const char *end = take_digits(q, &value, &n);
    if (n == 0)
        return p;
    *exponent = n > 3 ? MOST_TENS + MOST_DIGITS + 1 : negative ? -(int)value : (int)value;
    return end;
}

/* Nearly all numbers have up to 15 digits and a small exponent. Their digits and the power of ten are exact, so one
 * rounding gives the nearest double (Clinger 1990). The program never leaves the C locale, so strtod() is right for the
 * others. */
double sam_number_real(const char **text)
{
    const char *p = *text + (**text == '-' || **text == '+');
    uint64_t digits = 0;
    unsigned n = 0, before;
    int exponent = 0;
    bool hex = p[0] == '0' && (p[1] | 0x20) == 'x';
    p = take_digits(p, &digits, &n);
    before = n;
    if (*p == '.')
        p = take_digits(p + 1, &digits, &n);
    const char *end = take_exponent(p, &exponent);
    exponent -= (int)(n - before);
    if (n == 0 || n > MOST_DIGITS || hex || exponent > MOST_TENS || exponent < -MOST_TENS) {
        char *stop;
        double v = strtod(*text, &stop);
        *text = stop;
        return v;
    }
    double v = exponent < 0 ? (double)digits / tens[-exponent] : (double)digits * tens[exponent];
    v = **text == '-' ? -v : v;
    *text = end;
    return v;
}
