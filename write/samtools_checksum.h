/* SPDX-License-Identifier: MIT */
/* The text that `samtools checksum` (1.24, without options) prints for a file, computed from the records while they are
 * written. */
#ifndef SAMTOOLS_CHECKSUM_H
#define SAMTOOLS_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <htslib/sam.h>

struct samtools_checksum;

/* NULL: out of memory. */
struct samtools_checksum *samtools_checksum_new(int n_threads);
void samtools_checksum_free(struct samtools_checksum *sum);

/* Returns the bytes that it takes for records of the header's read groups: each thread may meet each group. Groups that
 * the header lacks take more. */
size_t samtools_checksum_memory(int n_threads, sam_hdr_t *sam);

/* Adds one record, unless its lengths do not fit. Each thread (0 .. n_threads - 1) has its own sums, so threads may
 * call this at the same time. -1: out of memory. */
int samtools_checksum_add(struct samtools_checksum *sum, int thread, const uint8_t *record, size_t size);

/* Writes the table of all records added, in any order and by any thread. path: the file name in the first line. Call it
 * when no thread adds records any more. -1: out of memory, or writing failed. */
int samtools_checksum_print(struct samtools_checksum *sum, const char *path, FILE *to);

#endif
