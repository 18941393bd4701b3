/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "run_merge.h"

/* Lets the run at `at` sink to its place. */
static void sift_down(struct run_merge *m, size_t at)
{
    struct merge_run run = m->heap[at];
    for (size_t child; (child = 2 * at + 1) < m->n; at = child) {
        if (child + 1 < m->n && bam_key_less(&m->order, &m->heap[child + 1].head, &m->heap[child].head))
            child++;
        if (!bam_key_less(&m->order, &m->heap[child].head, &run.head))
            break;
        m->heap[at] = m->heap[child];
    }
    m->heap[at] = run;
}

int run_merge_init(struct run_merge *m, const struct bam_sublist *sublists, size_t n,
                   struct bam_key_order order)
{
    m->n = 0;
    m->order = order;
    m->heap = malloc((n + 1) * sizeof *m->heap);
    if (!m->heap)
        return -1;
    for (size_t i = 0; i < n; i++) {
        const struct bam_key *keys = sublists[i].keys;
        if (sublists[i].n > 0)
            m->heap[m->n++] = (struct merge_run){keys[0], keys + 1, keys + sublists[i].n};
    }
    for (size_t i = m->n / 2; i-- > 0;)
        sift_down(m, i);
    return 0;
}

void run_merge_free(struct run_merge *m)
{
    free(m->heap);
    m->heap = NULL;
    m->n = 0;
}

int run_merge_next(struct run_merge *m, struct bam_key *key)
{
    if (m->n == 0)
        return 0;
    struct merge_run *top = &m->heap[0];
    *key = top->head;
    if (top->next < top->end)
        top->head = *top->next++;
    else
        *top = m->heap[--m->n];
    if (m->n > 1)
        sift_down(m, 0);
    return 1;
}
