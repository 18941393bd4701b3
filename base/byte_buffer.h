/* SPDX-License-Identifier: MIT */
/* Bytes that grow. A buffer of all zeros is empty. Its owner frees p. */
#ifndef BYTE_BUFFER_H
#define BYTE_BUFFER_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct byte_buffer {
    uint8_t *p;
    size_t n, max;               /* n: bytes in use, set by the owner; max: bytes there is room for */
};

/* Gives the buffer room for max bytes. Returns 0, or -1 if there is no memory; then nothing is changed. */
static inline int byte_buffer_resize(struct byte_buffer *buffer, size_t max)
{
    uint8_t *p = realloc(buffer->p, max);
    if (!p)
        return -1;
    buffer->p = p;
    buffer->max = max;
    return 0;
}

/* Makes room for size bytes in all; if it has to, for at least twice as many as before. Returns 0, or -1 if there is no
 * memory; then nothing is changed. */
static inline int byte_buffer_reserve(struct byte_buffer *buffer, size_t size)
{
    return size <= buffer->max ? 0 : byte_buffer_resize(buffer, size > 2 * buffer->max ? size : 2 * buffer->max);
}

/* Adds a copy of bytes[n]. Returns 0, or -1 if there is no memory; then nothing is changed. */
static inline int byte_buffer_append(struct byte_buffer *buffer, const void *bytes, size_t n)
{
    if (byte_buffer_reserve(buffer, buffer->n + n) < 0)
        return -1;
    if (n > 0)
        memcpy(buffer->p + buffer->n, bytes, n);
    buffer->n += n;
    return 0;
}

/* Room for one element of `size` bytes more in an array of n, of which there are *room: if it has to grow, for twice as
 * many, which moves it. Returns where it is; NULL: out of memory, and nothing is changed. */
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

/* Empties the buffer and gives back the memory beyond max bytes. */
static inline void byte_buffer_trim(struct byte_buffer *buffer, size_t max)
{
    buffer->n = 0;
    if (buffer->max > max)
        byte_buffer_resize(buffer, max);         /* shrinking hardly fails; then the buffer keeps its memory */
}

#endif
