/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "sort/run_merge.h"
#include "order/sort_key.h"

static bool less(const struct run_merge *m, const struct merge_head *a, const struct merge_head *b)
{
    if (a->sort != b->sort)
        return a->sort < b->sort;
    int by_record = m->rule ? sort_key_compare(m->rule, bam_record_at(a->record), bam_record_at(b->record)) : 0;
    return by_record ? by_record < 0 : a->way < b->way;
}

/* Moves the head at `at` down to its place in the heap. */
static void sift_down(struct run_merge *m, size_t at)
{
    struct merge_head head = m->heap[at];
    for (size_t child; (child = 2 * at + 1) < m->n; at = child) {
        if (child + 1 < m->n && less(m, &m->heap[child + 1], &m->heap[child]))
            child++;
        if (!less(m, &m->heap[child], &head))
            break;
        m->heap[at] = m->heap[child];
    }
    m->heap[at] = head;
}

int run_merge_init(struct run_merge *m, const struct sort_rule *rule, size_t max, size_t n_runs)
{
    *m = (struct run_merge){.rule = rule};
    m->ways = malloc((max + 1) * sizeof *m->ways);
    m->heap = malloc((max + 1) * sizeof *m->heap);
    if (!m->ways || !m->heap) {
        run_merge_free(m);
        return -1;
    }
    run_merge_reset(m, n_runs);
    return 0;
}

void run_merge_free(struct run_merge *m)
{
    free(m->ways);
    free(m->heap);
    *m = (struct run_merge){0};
}

void run_merge_reset(struct run_merge *m, size_t n_runs)
{
    memset(m->ways, 0, n_runs * sizeof *m->ways);
    m->n_ways = n_runs;
    m->n = 0;
    m->given = false;
}

void run_merge_add(struct run_merge *m, struct merge_way way)
{
    m->ways[m->n_ways++] = way;
}

/* Finds the head of a way, and fetches more keys if the way has none. Returns 1, 0 or -1, like run_merge_more_fn. */
static int head_of(struct run_merge *m, size_t number, struct merge_head *head)
{
    struct merge_way *way = &m->ways[number];
    while (way->next == way->end) {
        int more = m->more ? m->more(m->more_arg, number, way) : 0;
        if (more <= 0)
            return more;
    }
    *head = (struct merge_head){way->next->sort, bam_key_record(way->base, *way->next), number};
    return 1;
}

int run_merge_start(struct run_merge *m, run_merge_more_fn *more, void *arg)
{
    m->more = more;
    m->more_arg = arg;
    for (size_t i = 0; i < m->n_ways; i++) {
        int there = head_of(m, i, &m->heap[m->n]);
        if (there < 0)
            return -1;
        m->n += (size_t)there;
    }
    for (size_t i = m->n / 2; i-- > 0;)
        sift_down(m, i);
    return 0;
}

/* Steps over the key that was given out. The caller no longer needs it. */
static int advance(struct run_merge *m)
{
    struct merge_head *top = &m->heap[0];
    m->ways[top->way].next++;
    int there = head_of(m, top->way, top);
    if (there < 0)
        return -1;
    if (there == 0)
        *top = m->heap[--m->n];
    if (m->n > 1)
        sift_down(m, 0);
    return 0;
}

int run_merge_next(struct run_merge *m, struct merge_item *item)
{
    if (m->given && advance(m) < 0)
        return -1;
    m->given = m->n > 0;
    if (m->n == 0)
        return 0;
    const struct merge_way *way = &m->ways[m->heap[0].way];
    *item = (struct merge_item){*way->next, way->base, m->heap[0].way};
    return 1;
}
