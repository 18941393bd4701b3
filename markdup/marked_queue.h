/* SPDX-License-Identifier: MIT */
/* Slices in the order of the input. Serial; tasks may look slices up while none is pushed. */
#ifndef MARKED_QUEUE_H
#define MARKED_QUEUE_H

#include "markdup/marked_slice.h"

/* A zero-initialised struct is empty. */
struct marked_queue {
    struct marked_queued {
        struct marked_slice *slice;
        uint64_t first;          /* number of its first record: the slice may be gone at a lookup */
    } *list;
    size_t first, n, max;        /* list[first] to list[n - 1] are in use */
};

/* Also frees the slices. */
void marked_queue_free(struct marked_queue *queue);

static inline bool marked_queue_is_empty(const struct marked_queue *queue)
{
    return queue->first == queue->n;
}

/* -1: out of memory; the slice stays with the caller. May move all slices down: `first` then falls by as much. */
int marked_queue_push(struct marked_queue *queue, struct marked_slice *slice);

/* Removes the oldest slice. The queue must not be empty. */
static inline struct marked_slice *marked_queue_pop(struct marked_queue *queue)
{
    return queue->list[queue->first++].slice;
}

/* The slice of the record, which must be in the queue. */
struct marked_slice *marked_queue_find(const struct marked_queue *queue, uint64_t number);

#endif
