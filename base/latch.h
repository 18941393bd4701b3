/* SPDX-License-Identifier: MIT */
/* The first error wins. Every stage may trip the latch, from any thread; every
 * task body looks at it first and does nothing once it is tripped. */
#ifndef LATCH_H
#define LATCH_H

#include <stdatomic.h>
#include <stdbool.h>

struct latch {
    atomic_bool tripped;         /* any thread, once; read by all */
    char message[1024];          /* by the thread that tripped it; read after the parallel region */
};

/* Trips the latch with a message (file, record number, offset, cause, what to
 * do), unless it is tripped already. Always returns -1. */
int latch_fail(struct latch *latch, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* True after a failure or a caught signal: stop working. */
bool latch_tripped(const struct latch *latch);

/* Signals that end a process set a flag from now on, seen by latch_tripped(): for
 * the time in which there is a file to be removed. One that was ignored (nohup) or
 * has a handler stays so. With nothing to remove their default is better: it ends the process
 * even while a thread is stuck writing to a pipe that nobody reads. */
void latch_catch_signals(void);

/* Hides those signals from the threads that the caller starts from here on
 * (hide), and shows them to the calling thread again (!hide): so that they
 * interrupt its reads and nobody else's. Not PIPE: it comes to who writes. */
void latch_hide_signals(bool hide);

/* Whether a signal was caught. */
bool latch_signalled(void);

/* Ends the process by the signal that was caught, after everything is cleaned up. */
void latch_reraise(void);

#endif
