/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "latch.h"
#include "out_pipe.h"

enum { PIECE = 256 << 10 };     /* bytes per write: large ones are cheap, and memory is counted */

struct out_pipe {
    int fd;
    const char *path;
    struct latch *latch;
    int from, to;                /* sockets, since only they can be shut for all who hold a copy */
    pthread_t thread;
    atomic_bool ended;           /* all is written into it; who closes it, before the thread can see its end */
    uint8_t piece[PIECE];        /* the thread's */
};

static int write_piece(const struct out_pipe *p, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t wrote = write(p->fd, p->piece + done, n - done);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return latch_fail(p->latch, "writing %s failed: %s", p->path, strerror(errno));
        done += (size_t)wrote;
    }
    return 0;
}

static void *empty_pipe(void *arg)
{
    struct out_pipe *p = arg;
    ssize_t n;
    int failed = 0;
    /* Whatever happens it goes on, for htslib must not be left alone with a full pipe. */
    while ((n = read(p->from, p->piece, PIECE)) != 0 || !atomic_load(&p->ended)) {
        if (n > 0 && !failed)
            failed = write_piece(p, (size_t)n) < 0;
        if (n == 0 || (n < 0 && errno != EINTR))
            failed = latch_fail(p->latch, "writing %s failed: the pipe to it broke", p->path) < 0;
    }
    return NULL;
}

static int start(struct out_pipe *p)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -1;
    p->from = ends[0];
    p->to = ends[1];
    latch_hide_signals(true);                    /* they are for the master */
    int failed = pthread_create(&p->thread, NULL, empty_pipe, p);
    latch_hide_signals(false);
    if (!failed)
        return 0;
    close(ends[0]);
    close(ends[1]);
    return -1;
}

struct out_pipe *out_pipe_open(int fd, const char *path, struct latch *latch)
{
    struct out_pipe *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->fd = fd;
    p->path = path;
    p->latch = latch;
    if (start(p) == 0)
        return p;
    free(p);
    return NULL;
}

int out_pipe_end(const struct out_pipe *p)
{
    return dup(p->to);
}

void out_pipe_close(struct out_pipe *p)
{
    if (!p)
        return;
    atomic_store(&p->ended, true);
    shutdown(p->to, SHUT_WR);
    pthread_join(p->thread, NULL);
    close(p->to);
    close(p->from);
    free(p);
}
