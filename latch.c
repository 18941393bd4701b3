/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include "latch.h"

static volatile sig_atomic_t caught_signal;      /* the one mutable global */
static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { N_SIGNALS = sizeof signals / sizeof *signals };

int latch_fail(struct latch *latch, const char *format, ...)
{
    if (!atomic_exchange(&latch->tripped, true)) {
        va_list args;
        va_start(args, format);
        vsnprintf(latch->message, sizeof latch->message, format, args);
        va_end(args);
    }
    return -1;
}

bool latch_tripped(const struct latch *latch)
{
    return atomic_load_explicit(&latch->tripped, memory_order_relaxed) || caught_signal;
}

static void note_signal(int sig)
{
    caught_signal = sig;
}

void latch_catch_signals(void)
{
    for (int i = 0; i < N_SIGNALS; i++) {
        struct sigaction old, act = {.sa_handler = note_signal};
        sigaction(signals[i], NULL, &old);       /* no SA_RESTART: reads must return */
        if (old.sa_handler != SIG_IGN)
            sigaction(signals[i], &act, NULL);
    }
}

void latch_hide_signals(bool hide)
{
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < N_SIGNALS; i++)
        sigaddset(&set, signals[i]);
    pthread_sigmask(hide ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

void latch_reraise(void)
{
    if (caught_signal) {
        signal(caught_signal, SIG_DFL);
        raise(caught_signal);
    }
}
