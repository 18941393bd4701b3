/* SPDX-License-Identifier: MIT */
/* A buffer that grows. A zero-initialised buffer is empty. Its owner frees p. */
#ifndef BYTE_BUFFER_H
#define BYTE_BUFFER_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct byte_buffer {
    uint8_t *p;
    size_t n, max;               /* n: bytes in use, set by the owner; max: bytes allocated */
};

/* Gives the buffer room for max bytes. Returns 0, or -1 if out of memory; then nothing is changed. */
static inline int byte_buffer_resize(struct byte_buffer *buffer, size_t max)
{
    uint8_t *p = realloc(buffer->p, max);
    if (!p)
        return -1;
    buffer->p = p;
    buffer->max = max;
    return 0;
}

/* Makes room for size bytes in total; if it must grow, it becomes at least twice as large. Returns 0, or -1 if out of
 * memory; then nothing is changed. */
static inline int byte_buffer_reserve(struct byte_buffer *buffer, size_t size)
{
    return size <= buffer->max ? 0 : byte_buffer_resize(buffer, size > 2 * buffer->max ? size : 2 * buffer->max);
}

/* Adds a copy of bytes[n]. Returns 0, or -1 if out of memory; then nothing is changed. */
static inline int byte_buffer_append(struct byte_buffer *buffer, const void *bytes, size_t n)
{
    if (byte_buffer_reserve(buffer, buffer->n + n) < 0)
        return -1;
    if (n > 0)
        memcpy(buffer->p + buffer->n, bytes, n);
    buffer->n += n;
    return 0;
}

/* Makes room for one more element of `size` bytes in an array of n elements, which has room for *room. If it must grow,
 * its room doubles and it may move. Returns the array; NULL: out of memory, and nothing is changed. */
static inline void *byte_buffer_grow(void *array, size_t n, size_t *room, size_t size)
{
    enum { LEAST = 64 };
    if (n < *room)
        return array;
    size_t larger = *room < LEAST ? LEAST : 2 * *room;
    void *grown = realloc(array, larger * size);
    if (grown)
        *room = larger;
    return grown;
}

/* Empties the buffer and frees its memory beyond max bytes. */
static inline void byte_buffer_trim(struct byte_buffer *buffer, size_t max)
{
    buffer->n = 0;
    if (buffer->max > max)
        byte_buffer_resize(buffer, max);  /* shrinking hardly ever fails; if it does, the buffer keeps its memory */
}

#endif
