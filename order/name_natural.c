/* SPDX-License-Identifier: MIT */
#include <string.h>
#include "order/name_natural.h"

/* Compares the runs of digits at *a and *b and moves both pointers behind them. */
static int number_compare(const char **a, const char **b)
{
    const char *p = *a, *q = *b;
    while (*p == '0') p++;
    while (*q == '0') q++;
    int order = 0;
    for (; natural_digit(*p) && natural_digit(*q); p++, q++)
        if (order == 0)
            order = *p - *q;
    if (natural_digit(*p) || natural_digit(*q))
        order = natural_digit(*p) ? 1 : -1;
    *a = p;
    *b = q;
    return order;
}

/* Compares token by token. Both must be at the start of one. */
int name_natural_prefix(const char *a, const char *b, const char **rest)
{
    while (*a) {
        if (natural_digit(*a) && natural_digit(*b)) {
            int order = number_compare(&a, &b);
            if (order)
                return order;
        } else if (*a != *b) {
            return (uint8_t)*a < (uint8_t)*b ? -1 : 1;
        } else {
            a++, b++;
        }
    }
    *rest = b;
    return 0;
}

/* Number of bytes that both begin with, up to a NUL, which does not count. size bounds both. */
static size_t common_length(const char *a, const char *b, size_t size)
{
    const uint64_t ones = 0x0101010101010101u;
    size_t i = 0;
    for (; i + 8 <= size; i += 8) {
        uint64_t x, y;
        memcpy(&x, a + i, 8);
        memcpy(&y, b + i, 8);
        if (x != y || ((x - ones) & ~x & ones << 7))
            break;
    }
    while (i < size && a[i] == b[i] && a[i])
        i++;
    return i;
}

int name_natural_compare(const char *a, size_t a_size, const char *b, size_t b_size)
{
    size_t at = common_length(a, b, a_size < b_size ? a_size : b_size);
    if (a[at] == 0 && b[at] == 0)
        return 0;
    while (at > 0 && natural_digit(a[at - 1]))
        at--;
    const char *rest;
    int order = name_natural_prefix(a + at, b + at, &rest);
    return order ? order : -(*rest != 0);
}
