/* SPDX-License-Identifier: MIT */
/* The latch keeps the first error, from any thread. Every task looks first and does nothing if it is tripped. */
#ifndef LATCH_H
#define LATCH_H

#include <stdatomic.h>
#include <stdbool.h>

struct latch {
    atomic_int tripped;          /* enum latch_state: steps up, by any thread; read by all */
    bool by_index;               /* what is read is what indexes name; set before there are tasks that read it */
    char message[1024];          /* written while LATCH_WRITING, by the thread that set that; read when LATCH_TRIPPED */
};

enum latch_state { LATCH_OPEN, LATCH_WRITING, LATCH_TRIPPED };

/* Records an error in the latch: trips it with a message (file, record number, offset, cause, what to do),
 * unless it is tripped already. When it returns, the first message is there to be read. Always returns -1. */
int latch_fail(struct latch *latch, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Ends a message of damage in what was read: with by_index, that the index may be to blame; else "". */
const char *latch_index_hint(const struct latch *latch);

/* True after a failure, a caught signal or latch_stop(): stop working. */
bool latch_tripped(const struct latch *latch);

/* Whether an error was recorded. Then its message can be read. */
bool latch_failed(const struct latch *latch);

/* From this call on, signals that end a process only set a flag, which latch_tripped() sees. Call it when there is a
 * file to be removed. A signal that was ignored (nohup) or has a handler keeps that. While there is nothing to remove,
 * the default action is better: it ends the process even if a thread is stuck writing to a pipe that nobody reads. */
void latch_catch_signals(void);

/* Blocks (true) or unblocks those signals in the calling thread, and so in the threads that it starts from here on:
 * they shall interrupt the main thread's reads only. PIPE is never blocked: it goes to the thread that writes. */
void latch_hide_signals(bool hide);

/* Whether a signal was caught, or latch_stop() was called. */
bool latch_signalled(void);

/* The signal that was caught; 0: none. */
int latch_signal(void);

/* Trips all latches, for a reason that is told elsewhere. Any thread may call it. */
void latch_stop(void);

/* Whether that was called before any signal was caught. */
bool latch_stopped(void);

/* Ends the process by the signal that was caught, if any. Call it after everything is cleaned up. */
void latch_reraise(void);

#endif
