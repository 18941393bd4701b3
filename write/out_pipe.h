/* SPDX-License-Identifier: MIT */
/* A pipe to the output file for htslib's threads. A thread of ours empties it. When a write by htslib's threads fails,
 * as on a full disk, htslib 1.16 may wait forever (SAM) and never reports the cause. A write to this pipe does not
 * fail. */
#ifndef OUT_PIPE_H
#define OUT_PIPE_H

#include <stddef.h>
#include <stdint.h>

struct latch;
struct out_pipe;

/* Gets the bytes that were written. */
typedef void out_pipe_see_fn(void *arg, const uint8_t *bytes, size_t n);

struct out_pipe_options {
    int fd;                      /* descriptor of the output file; the caller owns it */
    const char *path;            /* for messages */
    out_pipe_see_fn *see;        /* called by the pipe's thread; may be NULL */
    void *arg;
    struct latch *latch;
};

/* If a write fails, the error is recorded in the latch, and all later bytes are discarded. NULL: the thread or the pipe
 * cannot be created. */
struct out_pipe *out_pipe_open(const struct out_pipe_options *options);

/* A descriptor to write to, which the caller owns. -1: errno has the cause. */
int out_pipe_end(const struct out_pipe *p);

/* Call it after the last write. Waits until all bytes are written and seen. The descriptors need not be closed: after
 * some errors htslib does not close them. */
void out_pipe_close(struct out_pipe *p);

#endif
