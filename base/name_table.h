/* SPDX-License-Identifier: MIT */
/* Names, numbered from 0 in the order in which they were added. The table copies them. It needs 10 to 16 bytes for each
 * name besides its text, and twice that while it grows. Threads may look names up while none is added. Serial. */
#ifndef NAME_TABLE_H
#define NAME_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include "base/byte_buffer.h"

enum { NAME_NONE = -1, NAME_NO_MEMORY = -2 };

/* A zero-initialised struct is empty. */
struct name_table {
    struct byte_buffer text;     /* the names, each with its NUL */
    struct byte_buffer starts;   /* uint32_t: where each name begins in the text */
    uint32_t *slots;             /* hash table: number of the name + 1, 0: free. A name is in the first free slot from
                                  * its hash on */
    size_t mask;                 /* slots - 1 */
};

void name_table_free(struct name_table *table);

/* Makes room for n names of n_text bytes in all, without their NULs. -1: out of memory. */
int name_table_reserve(struct name_table *table, size_t n, size_t n_text);

/* The number of the name of n bytes, none of which is NUL; NAME_NONE: not in the table. */
int32_t name_table_find(const struct name_table *table, const char *name, size_t n);

/* Adds a name and returns its number; NAME_NO_MEMORY: out of memory, or more than 4 GiB of names. A name that is in the
 * table already gets a new number, but name_table_find() still returns the first one. */
int32_t name_table_add(struct name_table *table, const char *name, size_t n);

static inline size_t name_table_count(const struct name_table *table)
{
    return table->starts.n / sizeof(uint32_t);
}

static inline const char *name_table_at(const struct name_table *table, size_t number)
{
    uint32_t start;
    memcpy(&start, table->starts.p + number * sizeof start, sizeof start);
    return (const char *)table->text.p + start;
}

#endif
