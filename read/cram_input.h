/* SPDX-License-Identifier: MIT */
/* A CRAM file on its way to htslib, which takes what it cannot decode for the file's end when memory runs
 * out: how many records it holds is counted here. Of a file by a look at each container's header, soon after
 * htslib has read it; what else it is (pipe, URL) passes through a thread of ours. */
#ifndef CRAM_INPUT_H
#define CRAM_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct byte_source;
struct cram_input;
struct latch;

struct cram_input_options {
    const char *path;            /* for messages */
    int fd;                      /* what htslib reads, if it is a regular file ... */
    off_t begin;                 /* ... and where it stood then; -1: it is none, and these read it, by the thread: */
    ssize_t (*read)(struct byte_source *source, void *buffer, size_t n);     /* as byte_source_read() */
    bool (*ready)(const struct byte_source *source, int timeout);            /* as byte_source_ready() */
    struct byte_source *source;
    struct latch *latch;
};

/* NULL: errno is ENOMEM, or another if no thread can be had. */
struct cram_input *cram_input_open(const struct cram_input_options *options);

/* What htslib is to read, a descriptor of the caller's; -1: errno says why. Not for a regular file. */
int cram_input_end(const struct cram_input *input);

/* While it is read, now and then: counts what htslib has read by now. */
int cram_input_go_on(struct cram_input *input);

/* After htslib's last record, the n-th: waits for the end of the input. -1, told to the latch: there are more or fewer. */
int cram_input_check(struct cram_input *input, uint64_t n);

/* After htslib has closed what it read. */
void cram_input_close(struct cram_input *input);

#endif
