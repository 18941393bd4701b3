/* SPDX-License-Identifier: MIT */
/* A view of bytes that another module provides, and a call to get more of them. Only the main thread uses a window,
 * except that any thread may call byte_window_release(). */
#ifndef BYTE_WINDOW_H
#define BYTE_WINDOW_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "base/task_ring.h"

struct frame_list;

/* The reader may leave fewer bytes than this when it asks for more: one BGZF block. */
enum { BYTE_WINDOW_KEPT = 65536 };

struct byte_window {
    const uint8_t *data;         /* the bytes that are available and not used yet */
    size_t size;
    uint64_t offset;             /* bytes of the input before `data` */
    atomic_int *users;           /* holds on the memory of the bytes; does not include `held`, so it may be below 0 */
    int held;                    /* holds that are not yet added to users: tasks write that cache line */
    uint32_t most_held;          /* parts of the memory, at least two, that may be held while more is asked for */
    struct frame_list *frames;   /* BGZF blocks in the window, listed (codec/frame_list.h) from its first byte on. NULL:
                                  * no list */
    int (*more)(struct byte_window *window, task_help_fn *help, void *arg);   /* set by the provider */
};

/* Waits until the window is larger, and calls help meanwhile. The bytes may move unless they are held. 1: it is larger;
 * 0: the input has ended; -1: failed, and the error is recorded in the latch. */
static inline int byte_window_more(struct byte_window *w, task_help_fn *help, void *arg)
{
    return w->more(w, help, arg);
}

/* Waits until the window has bytes. 1: it has; 0: the input has ended; -1: failed, and the error is recorded in the
 * latch. */
static inline int byte_window_fill(struct byte_window *w)
{
    return w->size > 0 ? 1 : byte_window_more(w, task_no_help, NULL);
}

/* Removes n bytes from the beginning. */
static inline void byte_window_skip(struct byte_window *w, size_t n)
{
    w->data += n;
    w->size -= n;
    w->offset += n;
}

/* Puts back the last n bytes that byte_window_skip() removed. The window must not have grown since. */
static inline void byte_window_put_back(struct byte_window *w, size_t n)
{
    w->data -= n;
    w->size += n;
    w->offset -= n;
}

/* Holds the bytes of the window: they stay where they are until byte_window_release(), even after they are skipped. */
static inline atomic_int *byte_window_hold(struct byte_window *w)
{
    w->held++;
    return w->users;
}

/* The provider calls this function to move the window to other memory. The bytes of the window are copied in front of
 * `to`, where BYTE_WINDOW_KEPT bytes must be free. After that, the window has no list of blocks. The old memory is in
 * use while its users are above 0. */
static inline void byte_window_move(struct byte_window *w, uint8_t *to, atomic_int *users)
{
    assert(w->size <= BYTE_WINDOW_KEPT);
    if (w->size > 0)                             /* the first window has no memory */
        memcpy(to - w->size, w->data, w->size);
    w->data = to - w->size;
    w->frames = NULL;
    if (w->held)
        atomic_fetch_add_explicit(w->users, w->held, memory_order_relaxed);
    w->held = 0;
    w->users = users;
}

static inline void byte_window_release(atomic_int *users)
{
    atomic_fetch_sub_explicit(users, 1, memory_order_release);
}

#endif
