/* SPDX-License-Identifier: MIT */
/* The latch keeps the first error of any thread. Every task checks it first and does nothing if it is tripped. */
#ifndef LATCH_H
#define LATCH_H

#include <stdatomic.h>
#include <stdbool.h>

enum { LATCH_MESSAGE = 1024 };    /* bytes of a message, with its NUL */

struct latch {
    atomic_int tripped;          /* enum latch_state: any thread moves it up; all threads read it */
    bool by_index;               /* the input is read where an index points; set before any task reads it */
    char message[LATCH_MESSAGE]; /* written while LATCH_WRITING, by the thread that set this state; read when
                                  * LATCH_TRIPPED */
};

enum latch_state { LATCH_OPEN, LATCH_WRITING, LATCH_TRIPPED };

/* Records an error in the latch: trips it with a message (file, record number, offset, cause, what to do), unless it is
 * tripped already. The first message can be read when it returns. Always returns -1. */
int latch_fail(struct latch *latch, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The end of a message about damaged input: with by_index, that the index may be the cause; otherwise "". */
const char *latch_index_hint(const struct latch *latch);

/* True after a failure, a caught signal or latch_stop(): stop working. */
bool latch_tripped(const struct latch *latch);

/* Returns whether an error was recorded. If so, its message can be read. */
bool latch_failed(const struct latch *latch);

/* From this call on, signals that end a process only set a flag, which latch_tripped() reads. Call it once there is a
 * file to remove. A signal that was ignored (nohup) or has a handler is left alone. While there is nothing to remove,
 * the default action is better: it ends the process even if a thread is blocked in a write to a pipe that is not
 * read. */
void latch_catch_signals(void);

/* Blocks (true) or unblocks those signals in the calling thread, and in the threads that it starts from then on:
 * signals must interrupt only the main thread's reads. PIPE is never blocked: the thread that writes gets it. */
void latch_hide_signals(bool hide);

/* Returns whether a signal was caught, or latch_stop() was called. */
bool latch_signalled(void);

/* The signal that was caught; 0: none. */
int latch_signal(void);

/* Trips all latches, for a reason that is reported elsewhere. Any thread may call it. */
void latch_stop(void);

/* Returns whether latch_stop() was called before any signal was caught. */
bool latch_stopped(void);

/* Ends the process by the caught signal, if any. Call it after all cleanup. */
void latch_reraise(void);

#endif
