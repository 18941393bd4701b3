/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/latch.h"
#include "base/out_file.h"
#include "write/out_pipe.h"
#include "base/thread_pipe.h"

enum { PIECE = 256 << 10 };     /* bytes per write: large writes are cheap, and memory is limited */

struct out_pipe {
    struct out_pipe_options opt;
    struct thread_pipe pipe;
    atomic_bool ended;  /* all bytes were written to it; set by out_pipe_close() before the thread can reach the end */
    uint8_t piece[PIECE];        /* the thread's */
};

static int write_piece(const struct out_pipe *p, size_t n)
{
    if (out_file_write(p->opt.fd, p->opt.path, p->piece, n, p->opt.latch) < 0)
        return -1;
    if (p->opt.see)
        p->opt.see(p->opt.arg, p->piece, n);
    return 0;
}

static void *empty_pipe(void *arg)
{
    struct out_pipe *p = arg;
    ssize_t n;
    int failed = 0;
    /* Keep reading after an error: htslib would wait forever at a full pipe. */
    while ((n = read(p->pipe.ours, p->piece, PIECE)) != 0 || !atomic_load(&p->ended)) {
        if (n > 0 && !failed)
            failed = write_piece(p, (size_t)n) < 0;
        if (n == 0 || (n < 0 && errno != EINTR))
            failed = latch_fail(p->opt.latch, "writing %s failed: the pipe to it broke", p->opt.path) < 0;
    }
    return NULL;
}

struct out_pipe *out_pipe_open(const struct out_pipe_options *options)
{
    struct out_pipe *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->opt = *options;
    if (thread_pipe_start(&p->pipe, empty_pipe, p) == 0)
        return p;
    free(p);
    return NULL;
}

int out_pipe_end(const struct out_pipe *p)
{
    return dup(p->pipe.theirs);
}

void out_pipe_close(struct out_pipe *p)
{
    if (!p)
        return;
    atomic_store(&p->ended, true);
    shutdown(p->pipe.theirs, SHUT_WR);
    thread_pipe_join(&p->pipe);
    free(p);
}
