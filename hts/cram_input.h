/* SPDX-License-Identifier: MIT */
/* Counts the records of a CRAM file on the file's way to htslib, and compares checksums of headers that htslib does not
 * look at (cram_count.h). The count is needed because htslib, when memory runs out, treats data that it cannot decode
 * as the end of the file. In a regular file, each container's header is read soon after htslib has read it. Any other
 * input (pipe, URL) passes through a thread of ours. */
#ifndef CRAM_INPUT_H
#define CRAM_INPUT_H

#include <stdbool.h>
#include <stdint.h>

struct cram_input;
struct input_file;

/* Begins to count. If the file is a regular file, htslib reads it at the same time as we do. Otherwise we read the
 * file, and htslib reads cram_input_end(). The file stays the caller's. checks: compare checksums. NULL: errno is
 * ENOMEM, or another value if no thread could be started. */
struct cram_input *cram_input_open(struct input_file *file, bool checks);

/* Returns a descriptor that htslib must read from; the caller owns it. Do not call it for a regular file. -1: errno
 * says why. */
int cram_input_end(const struct cram_input *input);

/* Counts the records that htslib has read so far. Call it from time to time while htslib reads. -1: failed, and the
 * error is recorded in the latch. */
int cram_input_go_on(struct cram_input *input);

/* A container: its range in the file, and the number of records in its slices. */
struct cram_place {
    uint64_t begin, end, n;
};

/* Counts one more container. It replaces cram_input_go_on() for CRAM 3 in a regular file whose checksums are compared.
 * 1: *place is the container; 0: there are no more containers; -1: failed, and the error is recorded in the latch. */
int cram_input_next(struct cram_input *input, struct cram_place *place);

/* Call it after htslib's last record, which was number n. Waits for the end of the input. -1: there are more or fewer
 * records, a checksum is wrong, or reading failed; the error is recorded in the latch. */
int cram_input_check(struct cram_input *input, uint64_t n);

/* Returns whether reads were decoded with references that were not compared with anything. Call it after
 * cram_input_check(). */
bool cram_input_mixes(const struct cram_input *input);

/* Call it after htslib has closed its end. */
void cram_input_close(struct cram_input *input);

#endif
