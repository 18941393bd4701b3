/* SPDX-License-Identifier: MIT */
/* Counts the CRAM that htslib writes, on its way through an out_pipe: htslib's results say little. */
#ifndef OUT_COUNT_H
#define OUT_COUNT_H

#include <stddef.h>
#include <stdint.h>

struct latch;
struct out_count;

/* NULL: out of memory. */
struct out_count *out_count_new(void);
void out_count_free(struct out_count *count);

/* An out_pipe_see_fn. count: a struct out_count, which belongs to the pipe's
 * thread until the pipe is closed. */
void out_count_see(void *count, const uint8_t *bytes, size_t n);

/* Call after the last byte. Checks that n records have come, and that the containers can be read. path: of the output,
 * for messages. -1: they have not, and the error is recorded in the latch. */
int out_count_check(const struct out_count *count, uint64_t n, const char *path, struct latch *latch);

#endif
