/* SPDX-License-Identifier: MIT */
/* Counts what htslib writes, on its way through an out_pipe. Where htslib writes with threads its
 * results say little, and for CRAM they never say much. FASTQ and FASTA are not counted: htslib
 * writes their records as they are put. */
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

/* An out_pipe_see_fn. count: a struct out_count, which belongs to the pipe's
 * thread until the pipe is closed. */
void out_count_see(void *count, const uint8_t *bytes, size_t n);

/* Call after the last byte. Checks that the header and n records have come and, for CRAM, that
 * its containers can be read. path: of the output, for messages. -1: they have not, and the
 * error is recorded in the latch. */
int out_count_check(const struct out_count *count, sam_hdr_t *header, uint64_t n, const char *path,
                    struct latch *latch);

#endif
