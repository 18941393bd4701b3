/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "markdup/marked_queue.h"

void marked_queue_free(struct marked_queue *q)
{
    while (!marked_queue_is_empty(q))
        marked_slice_free(marked_queue_pop(q));
    free(q->list);
    *q = (struct marked_queue){.list = NULL};
}

int marked_queue_push(struct marked_queue *q, struct marked_slice *slice)
{
    enum { LEAST = 64 };
    if (q->n == q->max && q->first > q->max / 2) {
        q->n -= q->first;
        memmove(q->list, q->list + q->first, q->n * sizeof *q->list);
        q->first = 0;
    } else if (q->n == q->max) {
        size_t max = 2 * q->max + LEAST;
        struct marked_queued *list = realloc(q->list, max * sizeof *list);
        if (!list)
            return -1;
        q->list = list;
        q->max = max;
    }
    q->list[q->n++] = (struct marked_queued){slice, slice->first};
    return 0;
}

/* The slice is usually one of the last. */
struct marked_slice *marked_queue_find(const struct marked_queue *q, uint64_t number)
{
    size_t high = q->n, step = 1;
    while (high > step && q->list[high - step].first > number) {
        high -= step;
        step *= 2;
    }
    size_t low = high > step ? high - step : 0;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        *(q->list[middle].first <= number ? &low : &high) = middle;
    }
    return q->list[low].slice;
}
