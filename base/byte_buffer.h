/* SPDX-License-Identifier: MIT */
/* Bytes that grow. All zeros are an empty one; whoever has it frees p. */
#ifndef BYTE_BUFFER_H
#define BYTE_BUFFER_H

#include <stddef.h>
#include <stdint.h>

struct byte_buffer {
    uint8_t *p;
    size_t n, max;               /* bytes in use, which is the owner's to count; bytes there is room for */
};

/* Makes room for size bytes in all, and for twice as many as before: for byte_buffer_reserve(). */
int byte_buffer_grow(struct byte_buffer *buffer, size_t size);

/* Makes room for size bytes in all. -1: no memory, nothing is changed. */
static inline int byte_buffer_reserve(struct byte_buffer *buffer, size_t size)
{
    return size <= buffer->max ? 0 : byte_buffer_grow(buffer, size);
}

/* Empties it and gives back what is more than max. */
void byte_buffer_trim(struct byte_buffer *buffer, size_t max);

#endif
