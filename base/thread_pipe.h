/* SPDX-License-Identifier: MIT */
/* A pipe with a thread of ours at one end and htslib at the other. */
#ifndef THREAD_PIPE_H
#define THREAD_PIPE_H

#include <pthread.h>

/* The ends are sockets, because only a socket can be shut down for all holders of a copy. */
struct thread_pipe {
    int ours;                    /* the thread's end */
    int theirs;                  /* htslib gets a dup() of it */
    pthread_t thread;
};

/* Starts the thread, which blocks the signals that are for the main thread. -1: errno has the cause. */
int thread_pipe_start(struct thread_pipe *pipe, void *(*run)(void *), void *arg);

/* Waits for the thread, which must be about to end, and closes the pipe. */
void thread_pipe_join(struct thread_pipe *pipe);

#endif
