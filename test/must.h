/* SPDX-License-Identifier: MIT */
/* The parts that unit tests and fuzz targets share: required conditions, and allocations. */
#ifndef TEST_MUST_H
#define TEST_MUST_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program unless the condition holds. The compiler understands this; it does not understand cmocka's
 * assertions. */
#define MUST(condition) do { \
    if (!(condition)) { \
        fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
        abort(); \
    } \
} while (0)

static inline void *must_alloc(size_t n)
{
    void *p = malloc(n ? n : 1);
    MUST(p);
    return p;
}

/* A copy in an allocation of exactly n bytes, so that a sanitizer reports a read after them. */
static inline uint8_t *exact_copy(const void *from, size_t n)
{
    uint8_t *p = malloc(n);
    MUST(p || n == 0);
    if (n)
        memcpy(p, from, n);
    return p;
}

#endif
