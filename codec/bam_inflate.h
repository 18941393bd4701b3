/* SPDX-License-Identifier: MIT */
/* INFLATE (RFC 1951) for blocks whose sizes are known in advance, as with BGZF. Serial, no I/O, no threads. */
#ifndef BAM_INFLATE_H
#define BAM_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A decoder. It serves one thread at a time. */
struct bam_inflate;

/* Makes a decoder; free it with free(). portable: use no instructions that only some processors have, for tests.
 * Returns NULL if there is no memory. */
struct bam_inflate *bam_inflate_new(bool portable);

/* Returns the bytes of memory that a decoder takes. */
size_t bam_inflate_memory(void);

/* Inflates the stream that begins at in[0] to out[size]. Returns 0, or -1 if the stream is not valid, does
 * not end within in[n], or does not make exactly `size` bytes; after -1 the content of out[size] is
 * undefined. Reads nothing outside in[n] and writes nothing outside out[size]. */
int bam_inflate(struct bam_inflate *d, const uint8_t *in, size_t n, uint8_t *out, size_t size);

#endif
