/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "duplicates/dup_optical.h"

/* One sweep over a group, in its order. A dot is active from its own turn until the scan from it would have stopped.
 * When the next dot comes, it is compared with those active ones that are close in y. The leaves of both trees are the
 * dots of the group, in the order of y. */
struct sweep {
    const struct dup_dot **by_y;
    uint32_t *leaf;              /* of each dot */
    uint32_t *best;              /* tree of active ones: the smallest rank below a node; UINT32_MAX: none */
    uint32_t *worst;             /* tree of active ones that are not marked: the largest rank + 1; 0: none */
    uint32_t *heap;              /* active ones, smallest x on top */
    size_t n_heap, n_leaves;     /* a power of two */
    uint32_t *by_rank;           /* the dot of each rank */
    long distance;
    struct dup_dot *dots;
    size_t n;
};

static int sign(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_tiles(const struct dup_dot *a, const struct dup_dot *b)
{
    int order = sign(a->spot.n_tile, b->spot.n_tile);
    return order ? order : memcmp(a->name + a->spot.tile, b->name + b->spot.tile, a->spot.n_tile);
}

static int by_tile(const void *x, const void *y)
{
    const struct dup_dot *a = x, *b = y;
    int order = compare_tiles(a, b);
    if (!order)
        order = sign(a->spot.x, b->spot.x);
    return order ? order : sign(a->place, b->place);
}

/* The better one first. */
static int by_worth(const void *x, const void *y)
{
    const struct dup_dot *a = *(const struct dup_dot *const *)x, *b = *(const struct dup_dot *const *)y;
    if (a->pair_end != b->pair_end)
        return a->pair_end ? -1 : 1;
    if (a->qc_fail != b->qc_fail)
        return a->qc_fail ? 1 : -1;
    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    int order = strcmp(a->name, b->name);
    return order ? order : sign(a - b, 0);
}

static int by_y(const void *x, const void *y)
{
    const struct dup_dot *a = *(const struct dup_dot *const *)x, *b = *(const struct dup_dot *const *)y;
    return sign(a->spot.y, b->spot.y);
}

/* ---- trees: node 1 is the root, the children of i are 2i and 2i + 1 ---- */

static void tree_set(uint32_t *tree, size_t n_leaves, size_t leaf, uint32_t value, bool smallest)
{
    size_t at = n_leaves + leaf;
    tree[at] = value;
    for (at /= 2; at > 0; at /= 2) {
        uint32_t a = tree[2 * at], b = tree[2 * at + 1];
        tree[at] = (a < b) == smallest ? a : b;
    }
}

/* The smallest or largest value of the leaves [from, to). */
static uint32_t tree_get(const uint32_t *tree, size_t n_leaves, size_t from, size_t to, bool smallest)
{
    uint32_t found = smallest ? UINT32_MAX : 0;
    for (from += n_leaves, to += n_leaves; from < to; from /= 2, to /= 2) {
        if (from & 1) {
            found = (tree[from] < found) == smallest ? tree[from] : found;
            from++;
        }
        if (to & 1) {
            to--;
            found = (tree[to] < found) == smallest ? tree[to] : found;
        }
    }
    return found;
}

/* ---- the heap of active dots ---- */

static bool is_left(const struct sweep *s, uint32_t a, uint32_t b)
{
    return s->dots[a].spot.x < s->dots[b].spot.x;
}

static void heap_push(struct sweep *s, uint32_t dot)
{
    size_t at = s->n_heap++;
    for (; at > 0 && is_left(s, dot, s->heap[(at - 1) / 2]); at = (at - 1) / 2)
        s->heap[at] = s->heap[(at - 1) / 2];
    s->heap[at] = dot;
}

static uint32_t heap_pop(struct sweep *s)
{
    uint32_t top = s->heap[0], last = s->heap[--s->n_heap];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < s->n_heap; at = child) {
        if (child + 1 < s->n_heap && is_left(s, s->heap[child + 1], s->heap[child]))
            child++;
        if (!is_left(s, s->heap[child], last))
            break;
        s->heap[at] = s->heap[child];
    }
    s->heap[at] = last;
    return top;
}

/* ---- the sweep ---- */

static long less(long v, long distance)
{
    return v < LONG_MIN + distance ? LONG_MIN : v - distance;
}

static long more(long v, long distance)
{
    return v > LONG_MAX - distance ? LONG_MAX : v + distance;
}

/* The first leaf whose y is at least y, or larger than that. */
static size_t leaf_from(const struct sweep *s, long y, bool larger)
{
    size_t low = 0, high = s->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        long there = s->by_y[middle]->spot.y;
        if (larger ? there > y : there >= y)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void mark(struct sweep *s, uint32_t dot)
{
    s->dots[dot].optical = true;
    tree_set(s->worst, s->n_leaves, s->leaf[dot], 0, false);
}

static void sweep_dot(struct sweep *s, uint32_t dot)
{
    struct dup_dot *now = &s->dots[dot];
    while (s->n_heap > 0 && s->dots[s->heap[0]].spot.x < less(now->spot.x, s->distance)) {
        uint32_t gone = heap_pop(s);
        tree_set(s->best, s->n_leaves, s->leaf[gone], UINT32_MAX, true);
        tree_set(s->worst, s->n_leaves, s->leaf[gone], 0, false);
    }
    size_t from = leaf_from(s, less(now->spot.y, s->distance), false);
    size_t to = leaf_from(s, more(now->spot.y, s->distance), true);
    if (tree_get(s->best, s->n_leaves, from, to, true) < now->rank)
        now->optical = true;
    for (uint32_t rank; (rank = tree_get(s->worst, s->n_leaves, from, to, false)) > now->rank + 1;)
        mark(s, s->by_rank[rank - 1]);
    tree_set(s->best, s->n_leaves, s->leaf[dot], now->rank, true);
    if (!now->optical)
        tree_set(s->worst, s->n_leaves, s->leaf[dot], now->rank + 1, false);
    heap_push(s, dot);
}

/* Orders the dots of the group by y and by worth. scratch: room for n pointers. */
static void rank_dots(struct sweep *s, const struct dup_dot **scratch)
{
    for (size_t i = 0; i < s->n; i++)
        s->by_y[i] = scratch[i] = &s->dots[i];
    qsort(s->by_y, s->n, sizeof *s->by_y, by_y);
    qsort(scratch, s->n, sizeof *scratch, by_worth);
    for (size_t i = 0; i < s->n; i++) {
        s->leaf[s->by_y[i] - s->dots] = (uint32_t)i;
        s->by_rank[i] = (uint32_t)(scratch[i] - s->dots);
        s->dots[s->by_rank[i]].rank = (uint32_t)i;
    }
}

static int mark_group(struct dup_dot *dots, size_t n, long distance)
{
    struct sweep s = {.dots = dots, .n = n, .distance = distance, .n_leaves = 1};
    while (s.n_leaves < n)
        s.n_leaves *= 2;
    const struct dup_dot **pointers = malloc(2 * n * sizeof *pointers);
    uint32_t *numbers = malloc((3 * n + 4 * s.n_leaves) * sizeof *numbers);
    if (!pointers || !numbers) {
        free(pointers);
        free(numbers);
        return -1;
    }
    s.by_y = pointers;
    s.leaf = numbers;
    s.by_rank = s.leaf + n;
    s.heap = s.by_rank + n;
    s.best = s.heap + n;
    s.worst = s.best + 2 * s.n_leaves;
    memset(s.best, 0xff, 2 * s.n_leaves * sizeof *s.best);
    memset(s.worst, 0, 2 * s.n_leaves * sizeof *s.worst);
    rank_dots(&s, pointers + n);
    for (uint32_t i = 0; i < n; i++)
        sweep_dot(&s, i);
    free(pointers);
    free(numbers);
    return 0;
}

int dup_optical_mark(struct dup_dot *dots, size_t n, long distance)
{
    qsort(dots, n, sizeof *dots, by_tile);
    for (size_t from = 0, to; from < n; from = to) {
        to = from + 1;
        while (to < n && (dots[to].spot.n_tile != dots[from].spot.n_tile || compare_tiles(&dots[to], &dots[from]) == 0))
            to++;
        if (to - from > 1 && mark_group(dots + from, to - from, distance) < 0)
            return -1;
    }
    return 0;
}
