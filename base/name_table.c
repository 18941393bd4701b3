/* SPDX-License-Identifier: MIT */
#include "base/byte_hash.h"
#include "base/name_table.h"

void name_table_free(struct name_table *t)
{
    free(t->text.p);
    free(t->starts.p);
    free(t->slots);
    *t = (struct name_table){.mask = 0};
}

/* The slot of this name, or the free slot for it. */
static size_t slot_of(const struct name_table *t, const char *name, size_t n)
{
    size_t at = byte_hash((const uint8_t *)name, n, 0) & t->mask;
    for (; t->slots[at]; at = (at + 1) & t->mask) {
        const char *there = name_table_at(t, t->slots[at] - 1);
        if (strncmp(there, name, n) == 0 && !there[n])
            break;
    }
    return at;
}

/* Makes enough slots for n names: at most two thirds are in use. */
static int grow(struct name_table *t, size_t n)
{
    size_t size = 4;
    while (size < n + n / 2 + 1)
        size *= 2;
    if (t->slots && size <= t->mask + 1)
        return 0;
    uint32_t *slots = calloc(size, sizeof *slots);
    if (!slots)
        return -1;
    free(t->slots);
    t->slots = slots;
    t->mask = size - 1;
    for (size_t i = 0; i < name_table_count(t); i++) {
        const char *name = name_table_at(t, i);
        size_t slot = slot_of(t, name, strlen(name));
        if (!slots[slot])
            slots[slot] = (uint32_t)i + 1;
    }
    return 0;
}

int name_table_reserve(struct name_table *t, size_t n, size_t n_text)
{
    return byte_buffer_reserve(&t->text, t->text.n + n + n_text) < 0
        || byte_buffer_reserve(&t->starts, t->starts.n + sizeof(uint32_t) * n) < 0
        || grow(t, name_table_count(t) + n) < 0 ? -1 : 0;
}

int32_t name_table_find(const struct name_table *t, const char *name, size_t n)
{
    return t->slots ? (int32_t)t->slots[slot_of(t, name, n)] - 1 : NAME_NONE;
}

int32_t name_table_add(struct name_table *t, const char *name, size_t n)
{
    size_t number = name_table_count(t);
    if (t->text.n + n >= UINT32_MAX || number >= INT32_MAX || name_table_reserve(t, 1, n) < 0)
        return NAME_NO_MEMORY;
    uint32_t start = (uint32_t)t->text.n;
    size_t slot = slot_of(t, name, n);
    if (!t->slots[slot])
        t->slots[slot] = (uint32_t)number + 1;
    byte_buffer_append(&t->starts, &start, sizeof start);
    byte_buffer_append(&t->text, name, n);
    byte_buffer_append(&t->text, "", 1);
    return (int32_t)number;
}
