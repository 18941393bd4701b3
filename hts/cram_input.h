/* SPDX-License-Identifier: MIT */
/* Counts the records that a CRAM file holds, on the file's way to htslib, and compares checksums of headers that
 * htslib does not look at (cram_count.h). The count is needed because
 * when memory runs out htslib takes what it cannot decode for the end of the file. In a regular
 * file each container's header is read soon after htslib has read it. Any other input (pipe, URL)
 * passes through a thread of ours. */
#ifndef CRAM_INPUT_H
#define CRAM_INPUT_H

#include <stdbool.h>
#include <stdint.h>

struct cram_input;
struct input_file;

/* The file is a regular one, which htslib reads beside us, or we read it and htslib reads cram_input_end(). It stays
 * the caller's. checks: compare checksums. NULL: errno is ENOMEM, or another if no thread could be started. */
struct cram_input *cram_input_open(struct input_file *file, bool checks);

/* A descriptor that htslib is to read; it belongs to the caller. Not for a
 * regular file. -1: errno says why. */
int cram_input_end(const struct cram_input *input);

/* Counts what htslib has read so far. Call it now and then while htslib reads. -1: failed, and the
 * error is recorded in the latch. */
int cram_input_go_on(struct cram_input *input);

/* A container: where it lies in the file, and how many records are in its slices. */
struct cram_place {
    uint64_t begin, end, n;
};

/* In place of cram_input_go_on(), for CRAM 3 in a regular file whose checksums are compared: counts one container more.
 * 1: *place is where it is; 0: there is none; -1: failed, and the error is recorded in the latch. */
int cram_input_next(struct cram_input *input, struct cram_place *place);

/* Call after htslib's last record, which was number n. Waits for the end of the input. -1: there are
 * more or fewer records, a checksum is wrong, or reading failed; the error is recorded in the latch. */
int cram_input_check(struct cram_input *input, uint64_t n);

/* Call after cram_input_check(). Whether reads were decoded by references that nobody has compared with anything. */
bool cram_input_mixes(const struct cram_input *input);

/* Call after htslib has closed its end. */
void cram_input_close(struct cram_input *input);

#endif
