/* SPDX-License-Identifier: MIT */
/* What htslib writes, counted on its way through an out_pipe: behind its threads its results say little, and of
 * CRAM never much. FASTQ and FASTA it writes as they are put; of them nothing is known here. */
#ifndef OUT_COUNT_H
#define OUT_COUNT_H

#include <stddef.h>
#include <stdint.h>
#include <htslib/sam.h>

struct latch;
struct out_count;

/* For an output of this format. NULL: no memory. */
struct out_count *out_count_new(const htsFormat *format);
void out_count_free(struct out_count *count);

/* An out_pipe_see_fn; count: a struct out_count, the pipe's thread's until the pipe is closed. */
void out_count_see(void *count, const uint8_t *bytes, size_t n);

/* After the last byte: whether the header and n records have come, of CRAM in containers that can be read.
 * -1: told to the latch, of an output of that path. */
int out_count_check(const struct out_count *count, sam_hdr_t *header, uint64_t n, const char *path, struct latch *latch);

#endif
