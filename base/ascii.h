/* SPDX-License-Identifier: MIT */
/* Tests of ASCII characters. They do not depend on the locale. */
#ifndef ASCII_H
#define ASCII_H

#include <stdbool.h>

static inline bool ascii_is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static inline bool ascii_is_letter(int c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static inline bool ascii_is_alnum(int c)
{
    return ascii_is_letter(c) || ascii_is_digit(c);
}

#endif
