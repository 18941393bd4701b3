/* SPDX-License-Identifier: MIT */
#include "order/name_natural.h"

/* Compares the runs of digits at *a and *b and moves both pointers past them. */
static int digits_compare(const char **a, const char **b)
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

/* Compares token by token. Both must be at the start of a token. */
int name_natural_prefix(const char *a, const char *b, const char **rest)
{
    while (*a) {
        if (natural_digit(*a) && natural_digit(*b)) {
            int order = digits_compare(&a, &b);
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

/* Equal bytes at the beginning are equal tokens, except the run of digits that the first different byte may belong to.
 * Names of one flow cell differ only near their ends. */
int name_natural_compare(const char *a, const char *b)
{
    size_t same = 0;
    while (a[same] && a[same] == b[same])
        same++;
    if (a[same] == b[same])
        return 0;
    while (same > 0 && natural_digit(a[same - 1]))
        same--;
    const char *rest;
    int order = name_natural_prefix(a + same, b + same, &rest);
    return order ? order : -(*rest != 0);
}
