/* SPDX-License-Identifier: MIT */
/* Counts the records in the CRAM that htslib writes, on its way through an out_pipe, because htslib's results do not
 * report all errors. */
#ifndef OUT_COUNT_H
#define OUT_COUNT_H

#include <stddef.h>
#include <stdint.h>

struct latch;
struct out_count;

/* NULL: out of memory. */
struct out_count *out_count_new(void);
void out_count_free(struct out_count *count);

/* An out_pipe_see_fn. count: a struct out_count, which belongs to the pipe's thread until the pipe is closed. */
void out_count_see(void *count, const uint8_t *bytes, size_t n);

/* Checks that n records were written, and that the containers can be read. Call it after the last byte. path: the
 * output, for messages. -1: they are not, and the error is recorded in the latch. */
int out_count_check(const struct out_count *count, uint64_t n, const char *path, struct latch *latch);

#endif
