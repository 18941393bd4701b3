/* SPDX-License-Identifier: MIT */
/* A pipe that has a thread of ours at one end and htslib at the other. */
#ifndef THREAD_PIPE_H
#define THREAD_PIPE_H

#include <pthread.h>

/* The ends are sockets, because only a socket can be shut down for all who hold a copy of it. */
struct thread_pipe {
    int ours;                    /* the thread's end */
    int theirs;                  /* who writes or reads there gets a dup() of it */
    pthread_t thread;
};

/* Starts the thread. It does not get the signals that are for the main thread. -1: errno says why. */
int thread_pipe_start(struct thread_pipe *pipe, void *(*run)(void *), void *arg);

/* Waits for the thread, which must be about to end, and closes the pipe. */
void thread_pipe_join(struct thread_pipe *pipe);

#endif
