/* SPDX-License-Identifier: MIT */
/* Slices in the order of the input. Serial; tasks may look slices up while nobody pushes. */
#ifndef MARKED_QUEUE_H
#define MARKED_QUEUE_H

#include "markdup/marked_slice.h"

/* A zero-initialised struct is empty. */
struct marked_queue {
    struct marked_queued {
        struct marked_slice *slice;
        uint64_t first;          /* number of its first record: the slice may be gone when somebody looks */
    } *list;
    size_t first, n, max;        /* list[first] to list[n - 1] are there */
};

/* Frees the slices, too. */
void marked_queue_free(struct marked_queue *queue);

static inline bool marked_queue_is_empty(const struct marked_queue *queue)
{
    return queue->first == queue->n;
}

/* -1: out of memory; the slice stays the caller's. May move all slices down: `first` then falls by as much. */
int marked_queue_push(struct marked_queue *queue, struct marked_slice *slice);

/* The oldest one. The queue is not empty. */
static inline struct marked_slice *marked_queue_pop(struct marked_queue *queue)
{
    return queue->list[queue->first++].slice;
}

/* The slice that has the record. It is there. */
struct marked_slice *marked_queue_find(const struct marked_queue *queue, uint64_t number);

#endif
