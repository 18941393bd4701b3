/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "stats/covered.h"

void covered_free(struct covered *c)
{
    free(c->blocks.p);
    free(c->tail.p);
    *c = (struct covered){0};
}

/* Adds a block that does not begin before the last one. */
static void put(struct covered *c, struct covered_block block)
{
    struct covered_block *each = covered_blocks(c);
    if (c->n == 0 || each[c->n - 1].end < block.begin)
        each[c->n++] = block;
    else if (each[c->n - 1].end < block.end)
        each[c->n - 1].end = block.end;
}

int covered_add(struct covered *c, const struct covered_block *blocks, size_t n)
{
    size_t at = c->n, size = sizeof *blocks;
    if (n == 0)
        return 0;
    while (at > 0 && covered_blocks(c)[at - 1].end >= blocks[0].begin)
        at--;
    size_t n_tail = c->n - at;
    c->tail.n = 0;
    if (byte_buffer_reserve(&c->blocks, (c->n + n) * size) < 0
        || byte_buffer_append(&c->tail, covered_blocks(c) + at, n_tail * size) < 0)
        return -1;
    const struct covered_block *tail = (const struct covered_block *)(void *)c->tail.p;
    c->n = at;
    for (size_t i = 0, k = 0; i < n_tail || k < n;)
        put(c, k == n || (i < n_tail && tail[i].begin <= blocks[k].begin) ? tail[i++] : blocks[k++]);
    return 0;
}

void covered_remove(struct covered *c, size_t n)
{
    c->n -= n;
    if (n > 0)
        memmove(covered_blocks(c), covered_blocks(c) + n, c->n * sizeof(struct covered_block));
}
