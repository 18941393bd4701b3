/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "base/byte_buffer.h"

static int set_max(struct byte_buffer *b, size_t max)
{
    uint8_t *p = realloc(b->p, max);
    if (!p)
        return -1;
    b->p = p;
    b->max = max;
    return 0;
}

int byte_buffer_grow(struct byte_buffer *b, size_t size)
{
    return set_max(b, size > 2 * b->max ? size : 2 * b->max);
}

/* Shrinking hardly fails. If it does, the buffer keeps its memory. */
void byte_buffer_trim(struct byte_buffer *b, size_t max)
{
    b->n = 0;
    if (b->max > max)
        set_max(b, max);
}
