/* SPDX-License-Identifier: MIT */
/* A pipe into the output file, for what htslib's threads write. A thread of ours empties it. When a write of theirs
 * fails, as on a full disk, htslib 1.16 may wait for ever (SAM) and never says why. A write to this pipe does not
 * fail. */
#ifndef OUT_PIPE_H
#define OUT_PIPE_H

#include <stddef.h>
#include <stdint.h>

struct latch;
struct out_pipe;

/* Looks at bytes that were written. */
typedef void out_pipe_see_fn(void *arg, const uint8_t *bytes, size_t n);

struct out_pipe_options {
    int fd;                      /* of the output file; stays the caller's */
    const char *path;            /* for messages */
    out_pipe_see_fn *see;        /* called by the pipe's thread; may be NULL */
    void *arg;
    struct latch *latch;
};

/* If writing fails, the error is recorded in the latch, and all later bytes are thrown away. NULL: no thread or pipe
 * can be made. */
struct out_pipe *out_pipe_open(const struct out_pipe_options *options);

/* A descriptor to write to, which belongs to the caller. -1: errno says why. */
int out_pipe_end(const struct out_pipe *p);

/* Call it after the last write. Waits until all is written and seen. The descriptors need not be closed: after some
 * errors htslib does not close them. */
void out_pipe_close(struct out_pipe *p);

#endif
