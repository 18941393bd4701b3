/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdlib.h>
#include "stats/stats_inserts.h"

void stats_inserts_free(struct stats_inserts *s)
{
    free(s->near);
    free(s->far);
    *s = (struct stats_inserts){0};
}

static bool is_free(const struct insert_count *c)
{
    return (c->n[0] | c->n[1] | c->n[2]) == 0;
}

static void add_to(uint64_t to[STATS_ORIENTATIONS], const uint64_t n[STATS_ORIENTATIONS])
{
    for (int i = 0; i < STATS_ORIENTATIONS; i++)
        to[i] += n[i];
}

/* Returns the slot of a size in a table of `room` slots. room is a power of two, and at least one slot is free. */
static struct insert_count *slot_of(struct insert_count *far, size_t room, uint32_t size)
{
    size_t i = size * UINT32_C(2654435769) & (room - 1);
    while (!is_free(&far[i]) && far[i].size != size)
        i = (i + 1) & (room - 1);
    return &far[i];
}

static int grow(struct stats_inserts *s)
{
    size_t room = s->room ? 2 * s->room : 256;
    struct insert_count *far = calloc(room, sizeof *far);
    if (!far)
        return -1;
    for (size_t i = 0; i < s->room; i++)
        if (!is_free(&s->far[i]))
            *slot_of(far, room, s->far[i].size) = s->far[i];
    free(s->far);
    s->far = far;
    s->room = room;
    return 0;
}

int stats_inserts_add(struct stats_inserts *s, uint32_t size, const uint64_t n[STATS_ORIENTATIONS])
{
    if (size < INSERTS_NEAR) {
        if (!s->near && !(s->near = calloc(INSERTS_NEAR, sizeof *s->near)))
            return -1;
        s->used |= UINT64_C(1) << size / INSERTS_BLOCK;
        add_to(s->near[size], n);
        return 0;
    }
    if (2 * s->n_far >= s->room && grow(s) < 0)
        return -1;
    struct insert_count *slot = slot_of(s->far, s->room, size);
    s->n_far += is_free(slot);
    slot->size = size;
    add_to(slot->n, n);
    return 0;
}

/* Adds the counts of the blocks that are in use. The memory of the others may not be in use yet. Returns -1 if out of
 * memory. */
static int join_near(struct stats_inserts *s, const struct stats_inserts *from)
{
    if (from->used && !s->near && !(s->near = calloc(INSERTS_NEAR, sizeof *s->near)))
        return -1;
    s->used |= from->used;
    for (uint32_t i = 0; from->near && i < INSERTS_NEAR; i += INSERTS_BLOCK)
        for (uint32_t k = 0; (from->used >> i / INSERTS_BLOCK & 1) && k < INSERTS_BLOCK; k++)
            add_to(s->near[i + k], from->near[i + k]);
    return 0;
}

int stats_inserts_join(struct stats_inserts *s, const struct stats_inserts *from)
{
    int result = join_near(s, from);
    for (size_t i = 0; i < from->room && result == 0; i++)
        if (!is_free(&from->far[i]))
            result = stats_inserts_add(s, from->far[i].size, from->far[i].n);
    return result;
}

static int compare_sizes(const void *a, const void *b)
{
    uint32_t x = ((const struct insert_count *)a)->size, y = ((const struct insert_count *)b)->size;
    return (x > y) - (x < y);
}

void stats_inserts_close(struct stats_inserts *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->room; i++)
        if (!is_free(&s->far[i]))
            s->far[n++] = s->far[i];
    s->n_far = n;
    if (n > 1)
        qsort(s->far, n, sizeof *s->far, compare_sizes);
}

const uint64_t *stats_inserts_next(const struct stats_inserts *s, size_t *at, uint32_t *size)
{
    for (; *at < INSERTS_NEAR; ++*at) {
        const uint64_t *n = s->near ? s->near[*at] : NULL;
        if (n && (n[0] | n[1] | n[2])) {
            *size = (uint32_t)(*at)++;
            return n;
        }
    }
    size_t i = *at - INSERTS_NEAR;
    if (i >= s->n_far)
        return NULL;
    ++*at;
    *size = s->far[i].size;
    return s->far[i].n;
}

size_t stats_inserts_memory(void)
{
    return INSERTS_NEAR * sizeof(uint64_t[STATS_ORIENTATIONS]);
}
