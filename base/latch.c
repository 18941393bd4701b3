/* SPDX-License-Identifier: MIT */
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include "base/latch.h"

/* This variable is global because signal handlers set it, in any thread. A negative value stands for latch_stop(). */
static atomic_int caught_signal;
enum { STOPPED = -1 };
/* Signals that end a process by default and are not caused by a fault in it. XFSZ is not among them: it becomes an
 * error of write(). */
static const int signals[] = {
    SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU, SIGVTALRM, SIGPROF,
#ifdef SIGPOLL
    SIGPOLL,
#endif
#ifdef SIGPWR
    SIGPWR,
#endif
#ifdef SIGSTKFLT
    SIGSTKFLT,
#endif
};
enum { N_SIGNALS = sizeof signals / sizeof *signals };

int latch_fail(struct latch *latch, const char *format, ...)
{
    int state = LATCH_OPEN;
    if (atomic_compare_exchange_strong(&latch->tripped, &state, LATCH_WRITING)) {
        va_list args;
        va_start(args, format);
        vsnprintf(latch->message, sizeof latch->message, format, args);
        va_end(args);
        atomic_store_explicit(&latch->tripped, LATCH_TRIPPED, memory_order_release);
    }
    while (!latch_failed(latch))
        sched_yield();
    return -1;
}

const char *latch_index_hint(const struct latch *latch)
{
    return latch->by_index ? ". Offsets only count the data that its index names, which may belong to another file: "
                             "samtools index makes a new one" : "";
}

bool latch_failed(const struct latch *latch)
{
    return atomic_load_explicit(&latch->tripped, memory_order_acquire) == LATCH_TRIPPED;
}

bool latch_signalled(void)
{
    return atomic_load_explicit(&caught_signal, memory_order_relaxed) != 0;
}

int latch_signal(void)
{
    int caught = atomic_load_explicit(&caught_signal, memory_order_relaxed);
    return caught > 0 ? caught : 0;
}

void latch_stop(void)
{
    int none = 0;
    atomic_compare_exchange_strong(&caught_signal, &none, STOPPED);
}

bool latch_stopped(void)
{
    return atomic_load_explicit(&caught_signal, memory_order_relaxed) == STOPPED;
}

bool latch_tripped(const struct latch *latch)
{
    return latch_failed(latch) || latch_signalled();
}

static void note_signal(int sig)
{
    atomic_store_explicit(&caught_signal, sig, memory_order_relaxed);
}

/* Returns whether the signal has its default action or our handler. Ignored signals stay ignored, and others keep their
 * handlers: a profiler has one for PROF. */
static bool may_be_handled(int sig)
{
    struct sigaction old;
    sigaction(sig, NULL, &old);
    return old.sa_handler == SIG_DFL || old.sa_handler == note_signal;
}

void latch_catch_signals(void)
{
    struct sigaction act = {.sa_handler = note_signal};      /* no SA_RESTART: reads must be interrupted */
    for (int i = 0; i < N_SIGNALS; i++)
        if (may_be_handled(signals[i]))
            sigaction(signals[i], &act, NULL);
}

void latch_hide_signals(bool hide)
{
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < N_SIGNALS; i++)
        if (signals[i] != SIGPIPE && may_be_handled(signals[i]))
            sigaddset(&set, signals[i]);
    pthread_sigmask(hide ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

void latch_reraise(void)
{
    int sig = latch_signal();
    if (sig) {
        signal(sig, SIG_DFL);
        raise(sig);
    }
}
