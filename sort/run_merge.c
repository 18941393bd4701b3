/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "sort/run_merge.h"
#include "order/sort_key.h"

static bool less(const struct run_merge *m, const struct merge_head *a, const struct merge_head *b)
{
    if (a->sort != b->sort)
        return a->sort < b->sort;
    int by_record = m->rule ? sort_key_compare(m->rule, (const struct bam_record *)a->record,
                                               (const struct bam_record *)b->record) : 0;
    return by_record ? by_record < 0 : a->source < b->source;
}

/* Moves the head at `at` down to where it belongs. */
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
    m->sources = malloc((max + 1) * sizeof *m->sources);
    m->heap = malloc((max + 1) * sizeof *m->heap);
    if (!m->sources || !m->heap) {
        run_merge_free(m);
        return -1;
    }
    run_merge_reset(m, n_runs);
    return 0;
}

void run_merge_free(struct run_merge *m)
{
    free(m->sources);
    free(m->heap);
    *m = (struct run_merge){0};
}

void run_merge_reset(struct run_merge *m, size_t n_runs)
{
    memset(m->sources, 0, n_runs * sizeof *m->sources);
    m->n_sources = n_runs;
    m->n = 0;
    m->given = false;
}

void run_merge_add(struct run_merge *m, struct merge_source source)
{
    m->sources[m->n_sources++] = source;
}

/* Finds the head of a source, and fetches more keys if the source has none. Returns 1, 0
 * or -1, as run_merge_more_fn does. */
static int head_of(struct run_merge *m, size_t number, struct merge_head *head)
{
    struct merge_source *source = &m->sources[number];
    while (source->next == source->end) {
        int more = m->more ? m->more(m->more_arg, number, source) : 0;
        if (more <= 0)
            return more;
    }
    *head = (struct merge_head){source->next->sort, bam_key_record(source->base, *source->next), number};
    return 1;
}

int run_merge_start(struct run_merge *m, run_merge_more_fn *more, void *arg)
{
    m->more = more;
    m->more_arg = arg;
    for (size_t i = 0; i < m->n_sources; i++) {
        int there = head_of(m, i, &m->heap[m->n]);
        if (there < 0)
            return -1;
        m->n += (size_t)there;
    }
    for (size_t i = m->n / 2; i-- > 0;)
        sift_down(m, i);
    return 0;
}

/* Steps over the key that was given out. The caller is done with it by now. */
static int advance(struct run_merge *m)
{
    struct merge_head *top = &m->heap[0];
    m->sources[top->source].next++;
    int there = head_of(m, top->source, top);
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
    const struct merge_source *source = &m->sources[m->heap[0].source];
    *item = (struct merge_item){*source->next, source->base, m->heap[0].source};
    return 1;
}
