/* SPDX-License-Identifier: MIT */
/* Counts by cycle or length: as many rows as needed, each with a fixed number of columns. Rows that were never counted
 * are 0. */
#ifndef STATS_COLUMN_H
#define STATS_COLUMN_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A zero-initialised struct is empty. Its owner frees n. */
struct stats_column {
    uint64_t *n;
    size_t room;                 /* rows */
};

/* Makes room for the row with this number. Returns -1 if out of memory. */
static inline int stats_column_reserve(struct stats_column *c, size_t row, size_t columns)
{
    if (row < c->room)
        return 0;
    size_t room = 2 * row + 256;
    uint64_t *n = realloc(c->n, room * columns * sizeof *n);
    if (!n)
        return -1;
    memset(n + c->room * columns, 0, (room - c->room) * columns * sizeof *n);
    c->n = n;
    c->room = room;
    return 0;
}

/* Bytes of memory for rows up to this number. */
static inline size_t stats_column_memory(size_t row, size_t columns)
{
    return (2 * row + 256) * columns * sizeof(uint64_t);
}

static inline uint64_t stats_column_at(const struct stats_column *c, size_t row, size_t columns, size_t column)
{
    return row < c->room ? c->n[row * columns + column] : 0;
}

#endif
