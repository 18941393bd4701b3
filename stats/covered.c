/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "stats/covered.h"

void covered_free(struct covered *c)
{
    free(c->each);
    free(c->tail);
    *c = (struct covered){0};
}

static int reserve(struct covered_block **each, size_t *room, size_t n)
{
    size_t larger = n > 2 * *room ? n : 2 * *room;
    if (n <= *room)
        return 0;
    struct covered_block *grown = realloc(*each, larger * sizeof *grown);
    if (!grown)
        return -1;
    *each = grown;
    *room = larger;
    return 0;
}

/* Adds a block that does not begin before the last one. */
static void put(struct covered *c, struct covered_block block)
{
    if (c->n == 0 || c->each[c->n - 1].end < block.begin)
        c->each[c->n++] = block;
    else if (c->each[c->n - 1].end < block.end)
        c->each[c->n - 1].end = block.end;
}

int covered_add(struct covered *c, const struct covered_block *blocks, size_t n)
{
    size_t at = c->n;
    while (n > 0 && at > 0 && c->each[at - 1].end >= blocks[0].begin)
        at--;
    size_t n_tail = c->n - at;
    if (reserve(&c->each, &c->room, c->n + n) < 0 || reserve(&c->tail, &c->room_tail, n_tail) < 0)
        return -1;
    if (n_tail > 0)
        memcpy(c->tail, c->each + at, n_tail * sizeof *c->tail);
    c->n = at;
    for (size_t i = 0, k = 0; i < n_tail || k < n;)
        put(c, k == n || (i < n_tail && c->tail[i].begin <= blocks[k].begin) ? c->tail[i++] : blocks[k++]);
    return 0;
}

void covered_remove(struct covered *c, size_t n)
{
    c->n -= n;
    if (n > 0)
        memmove(c->each, c->each + n, c->n * sizeof *c->each);
}
