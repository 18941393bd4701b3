/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/affinity.h"
#include "base/latch.h"
#include "base/thread_pipe.h"

int thread_pipe_start(struct thread_pipe *p, void *(*run)(void *), void *arg)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -1;
    p->ours = ends[0];
    p->theirs = ends[1];
    struct affinity bound;
    latch_hide_signals(true);
    affinity_widen(&bound);
    int error = pthread_create(&p->thread, NULL, run, arg);
    affinity_narrow(&bound);
    latch_hide_signals(false);
    if (!error)
        return 0;
    close(ends[0]);
    close(ends[1]);
    errno = error;
    return -1;
}

void thread_pipe_join(struct thread_pipe *p)
{
    pthread_join(p->thread, NULL);
    close(p->ours);
    close(p->theirs);
}
