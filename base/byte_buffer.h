/* SPDX-License-Identifier: MIT */
/* Bytes that grow. A buffer of all zeros is empty. Its owner frees p. */
#ifndef BYTE_BUFFER_H
#define BYTE_BUFFER_H

#include <stddef.h>
#include <stdint.h>

struct byte_buffer {
    uint8_t *p;
    size_t n, max;               /* n: bytes in use, set by the owner; max: bytes there is room for */
};

/* Makes room for size bytes in all, and for at least twice as many as before. byte_buffer_reserve() calls
 * it. Returns 0, or -1 if there is no memory. */
int byte_buffer_grow(struct byte_buffer *buffer, size_t size);

/* Makes room for size bytes in all. Returns 0, or -1 if there is no memory; then nothing is changed. */
static inline int byte_buffer_reserve(struct byte_buffer *buffer, size_t size)
{
    return size <= buffer->max ? 0 : byte_buffer_grow(buffer, size);
}

/* Empties the buffer and gives back the memory beyond max bytes. */
void byte_buffer_trim(struct byte_buffer *buffer, size_t max);

#endif
