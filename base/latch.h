/* SPDX-License-Identifier: MIT */
/* The latch keeps the first error, from any thread. Every task looks first and does nothing if it is tripped. */
#ifndef LATCH_H
#define LATCH_H

#include <stdatomic.h>
#include <stdbool.h>

struct latch {
    atomic_bool tripped;         /* set once, by any thread; read by all */
    /* written by the thread that trips the latch; read after the parallel region */
    char message[1024];
};

/* Records an error in the latch: trips it with a message (file, record number, offset, cause, what to do),
 * unless it is tripped already. Always returns -1. */
int latch_fail(struct latch *latch, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* True after a failure or a caught signal: stop working. */
bool latch_tripped(const struct latch *latch);

/* From this call on, signals that end a process only set a flag, which latch_tripped() sees. Call it when there is a
 * file to be removed. A signal that was ignored (nohup) or has a handler keeps that. While there is nothing to remove,
 * the default action is better: it ends the process even if a thread is stuck writing to a pipe that nobody reads. */
void latch_catch_signals(void);

/* Blocks (true) or unblocks those signals in the calling thread, and so in the threads that it starts from here on:
 * they shall interrupt the main thread's reads only. PIPE is never blocked: it goes to the thread that writes. */
void latch_hide_signals(bool hide);

/* Whether a signal was caught. */
bool latch_signalled(void);

/* Ends the process by the signal that was caught, if any. Call it after everything is cleaned up. */
void latch_reraise(void);

#endif
