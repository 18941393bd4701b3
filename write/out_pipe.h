/* SPDX-License-Identifier: MIT */
/* A pipe into the output file, emptied by a thread of its own, for what htslib's threads
 * write: when one of their writes fails, as on a full disk, htslib 1.16 may wait for ever
 * (SAM) and never tells why. A write to this pipe does not fail. */
#ifndef OUT_PIPE_H
#define OUT_PIPE_H

#include <stddef.h>
#include <stdint.h>

struct latch;
struct out_pipe;

/* Is shown what was written. */
typedef void out_pipe_see_fn(void *arg, const uint8_t *bytes, size_t n);

struct out_pipe_options {
    int fd;                      /* where it leads to; stays the caller's */
    const char *path;            /* for messages */
    out_pipe_see_fn *see;        /* called by the pipe's thread; NULL: nobody looks */
    void *arg;
    struct latch *latch;
};

/* What fails there is told to the latch, and all that comes later is thrown away. NULL: no thread or
 * pipe can be had. */
struct out_pipe *out_pipe_open(const struct out_pipe_options *options);

/* A descriptor to write to, which is the caller's; -1: errno says why. */
int out_pipe_end(const struct out_pipe *p);

/* After the last write: waits until all is written and seen. Whether those descriptors are closed does not
 * matter: after some errors htslib forgets to. */
void out_pipe_close(struct out_pipe *p);

#endif
