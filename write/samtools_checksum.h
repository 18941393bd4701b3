/* SPDX-License-Identifier: MIT */
/* The text that `samtools checksum` (1.24, without options) prints of a file, made of the records on their way
 * there. */
#ifndef SAMTOOLS_CHECKSUM_H
#define SAMTOOLS_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct samtools_checksum;

/* NULL: out of memory. */
struct samtools_checksum *samtools_checksum_new(int n_threads);
void samtools_checksum_free(struct samtools_checksum *sum);

/* Adds one record, which is none if its lengths do not fit. Each thread (0 .. n_threads - 1) has sums of its own, so
 * threads may call this at the same time. -1: out of memory. */
int samtools_checksum_add(struct samtools_checksum *sum, int thread, const uint8_t *record, size_t size);

/* Adds what thread number `thread`, not 0, has added to what thread 0 has, and clears it. -1: out of memory. */
int samtools_checksum_join(struct samtools_checksum *sum, int thread);

/* Writes the table of all records added, in whatever order and by whichever thread. path: the file they are in, as the
 * first line names it. Call it when no thread adds any more. -1: out of memory, or writing failed. */
int samtools_checksum_print(struct samtools_checksum *sum, const char *path, FILE *to);

#endif
