/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "markdup/dup_links.h"

/* A link that was added after links with larger numbers. */
struct straggler {
    uint64_t number;
    uint32_t link;
};

enum { BUCKETS_LEAST = 1 << 8, POOL_KEPT = 1 << 20 };
_Static_assert(sizeof(struct dup_link) + 256 <= SMALL_POOL_MAX, "a link with the longest name");

/* ---- links by number ---- */

/* Consecutive numbers mostly have consecutive buckets, because records come in that order. */
static uint32_t *bucket_of(const struct dup_links *l, uint64_t number)
{
    enum { NEAR = 16 };
    uint64_t hash = number / NEAR * 0x9e3779b97f4a7c15;
    return &l->buckets[((hash ^ hash >> 32) * NEAR + number % NEAR) & l->mask];
}

uint32_t dup_links_find(const struct dup_links *l, uint64_t number)
{
    uint32_t at = *bucket_of(l, number);
    while (at && dup_link_at(l, at)->number != number)
        at = dup_link_at(l, at)->in_bucket;
    return at;
}

static void bucket_put(struct dup_links *l, uint32_t at)
{
    struct dup_link *link = dup_link_at(l, at);
    uint32_t *bucket = bucket_of(l, link->number);
    link->in_bucket = *bucket;
    *bucket = at;
}

void dup_links_bucket_remove(struct dup_links *l, uint32_t at)
{
    uint32_t *there = bucket_of(l, dup_link_at(l, at)->number);
    while (*there != at)
        there = &dup_link_at(l, *there)->in_bucket;
    *there = dup_link_at(l, at)->in_bucket;
    l->n_links--;
}

static int buckets_grow(struct dup_links *l)
{
    size_t n_old = l->buckets ? l->mask + 1 : 0, n = l->buckets ? 2 * n_old : BUCKETS_LEAST;
    uint32_t *old = l->buckets, *buckets = calloc(n, sizeof *buckets);
    if (!buckets)
        return -1;
    l->buckets = buckets;
    l->mask = n - 1;
    for (size_t i = 0; i < n_old; i++)
        for (uint32_t at = old[i], next; at; at = next) {
            next = dup_link_at(l, at)->in_bucket;
            bucket_put(l, at);
        }
    free(old);
    return 0;
}

/* ---- the smallest number ---- */

static struct straggler *heap_of(const struct dup_links *l)
{
    return (struct straggler *)(void *)l->heap.p;
}

static int heap_push(struct dup_links *l, struct straggler link)
{
    if (byte_buffer_reserve(&l->heap, (l->n_heap + 1) * sizeof link) < 0)
        return -1;
    struct straggler *heap = heap_of(l);
    size_t at = l->n_heap++;
    for (; at > 0 && link.number < heap[(at - 1) / 2].number; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = link;
    return 0;
}

static void heap_pop(struct dup_links *l)
{
    struct straggler *heap = heap_of(l), last = heap[--l->n_heap];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < l->n_heap; at = child) {
        if (child + 1 < l->n_heap && heap[child + 1].number < heap[child].number)
            child++;
        if (heap[child].number >= last.number)
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
}

static int line_up(struct dup_links *l, uint32_t at)
{
    struct dup_link *link = dup_link_at(l, at);
    if (l->first && dup_link_at(l, l->last)->number > link->number)
        return heap_push(l, (struct straggler){link->number, at});
    *(l->first ? &dup_link_at(l, l->last)->later : &l->first) = at;
    l->last = at;
    return 0;
}

static bool straggler_is_first(const struct dup_links *l)
{
    return l->n_heap > 0 && (!l->first || heap_of(l)->number < dup_link_at(l, l->first)->number);
}

void dup_links_pop(struct dup_links *l)
{
    if (straggler_is_first(l))
        heap_pop(l);
    else
        l->first = dup_link_at(l, l->first)->later;
}

void dup_links_give(struct dup_links *l, uint32_t at)
{
    const struct dup_node *node = dup_node_at(l, at);
    small_pool_give(&l->pool, at, node->away ? sizeof(struct dup_bundle)
                                             : offsetof(struct dup_link, name) + node->name_len);
}

uint32_t dup_links_first(struct dup_links *l)
{
    for (uint32_t at; (at = straggler_is_first(l) ? heap_of(l)->link : l->first); dup_links_give(l, at)) {
        if (!dup_node_at(l, at)->dropped)
            return at;
        dup_links_pop(l);
    }
    return 0;
}

/* ---- links and trees ---- */

static void tree_leave(struct dup_links *l, uint32_t at)
{
    struct dup_tree *tree = dup_tree_at(l, at);
    *(tree->older ? &dup_tree_at(l, tree->older)->newer : &l->oldest) = tree->newer;
    *(tree->newer ? &dup_tree_at(l, tree->newer)->older : &l->newest) = tree->older;
}

static void tree_enter(struct dup_links *l, uint32_t at)
{
    struct dup_tree *tree = dup_tree_at(l, at);
    tree->older = l->newest;
    tree->newer = 0;
    *(l->newest ? &dup_tree_at(l, l->newest)->newer : &l->oldest) = at;
    l->newest = at;
}

/* Removes the tree from the others and frees it. */
static void tree_end(struct dup_links *l, uint32_t at)
{
    tree_leave(l, at);
    small_pool_give(&l->pool, at, sizeof(struct dup_tree));
}

void dup_links_stay_open(struct dup_links *l, uint32_t at, int64_t closed_at)
{
    tree_leave(l, at);
    dup_tree_at(l, at)->closed_at = closed_at;
    tree_enter(l, at);
}

uint32_t dup_links_take(struct dup_links *l, const struct dup_member *m, bool named)
{
    uint32_t at = dup_links_find(l, m->number), tree;
    if (at)
        return at;
    uint8_t name_len = named ? m->name_len : 0;
    if ((l->n_links > l->mask && buckets_grow(l) < 0) || !(tree = small_pool_take(&l->pool, sizeof(struct dup_tree)))
        || !(at = small_pool_take(&l->pool, offsetof(struct dup_link, name) + name_len)))
        return 0;
    struct dup_link *link = dup_link_at(l, at);
    *dup_tree_at(l, tree) = (struct dup_tree){.count = 1, .root = at, .last = at, .group = m->group};
    *link = (struct dup_link){.number = m->number, .leaves_at = m->leaves_at, .score = m->score,
                              .node = {.tree = tree, .is_root = true, .pair_end = m->pair_end, .qc_fail = m->qc_fail,
                                       .has_mate_score = m->has_mate_score, .elsewhere = m->elsewhere,
                                       .name_len = name_len}};
    if (name_len)
        memcpy(link->name, m->name, name_len);
    if (line_up(l, at) < 0)
        return 0;
    bucket_put(l, at);
    l->n_links++;
    tree_enter(l, tree);
    return at;
}

uint32_t dup_links_root(const struct dup_links *l, uint32_t at)
{
    for (struct dup_node *node; !(node = dup_node_at(l, at))->is_root; at = node->above) {
        const struct dup_node *above = dup_node_at(l, node->above);
        if (!above->is_root)
            node->above = above->above;
    }
    return at;
}

/* Adds a newcomer that lost right after the winner, and its children at the end of the list. An incumbent that lost is
 * added at the end, with all its children. */
void dup_links_join(struct dup_links *l, uint32_t winner, uint32_t loser, bool newcomer_won)
{
    struct dup_node *won = dup_node_at(l, winner), *lost = dup_node_at(l, loser);
    uint32_t to = dup_node_at(l, dup_links_root(l, winner))->tree, from = lost->tree;
    assert(lost->is_root && from != to);         /* a record that can still lose has not lost yet */
    struct dup_tree *tree = dup_tree_at(l, to);
    uint32_t last = dup_tree_at(l, from)->last;
    tree_end(l, from);
    lost->is_root = false;
    lost->above = lost->original = winner;
    if (newcomer_won || !won->next) {
        dup_node_at(l, tree->last)->next = loser;
        tree->last = last;
    } else {
        dup_node_at(l, tree->last)->next = lost->next;
        if (lost->next)
            tree->last = last;
        lost->next = won->next;
        won->next = loser;
    }
    dup_links_stay_open(l, to, dup_link_at(l, newcomer_won ? winner : loser)->leaves_at);
}

void dup_links_drop(struct dup_links *l, uint32_t at)
{
    struct dup_node *node = dup_node_at(l, at);
    tree_end(l, node->tree);
    dup_links_bucket_remove(l, at);
    node->dropped = true;
    if (node->gone)
        dup_links_give(l, at);
}

void dup_links_forget_oldest(struct dup_links *l)
{
    uint32_t tree = l->oldest;
    for (uint32_t at = dup_tree_at(l, tree)->root, next; at; at = next) {
        next = dup_node_at(l, at)->next;
        assert(dup_node_at(l, at)->gone);
        if (!dup_node_at(l, at)->away)
            dup_links_bucket_remove(l, at);
        dup_links_give(l, at);
    }
    tree_end(l, tree);
}

/* ---- */

int dup_links_open(struct dup_links *l)
{
    return buckets_grow(l);
}

void dup_links_free(struct dup_links *l)
{
    small_pool_free(&l->pool);
    free(l->buckets);
    free(l->heap.p);
}

bool dup_links_rest(struct dup_links *l)
{
    bool rests = !l->oldest && !l->first && !l->n_heap;
    if (rests && small_pool_memory(&l->pool) > POOL_KEPT)
        small_pool_free(&l->pool);
    return rests;
}

size_t dup_links_memory(const struct dup_links *l)
{
    return small_pool_memory(&l->pool) + (l->mask + 1) * sizeof *l->buckets + l->heap.max;
}
