/* SPDX-License-Identifier: MIT */
/* INFLATE (RFC 1951) for blocks whose sizes are known before, as those of BGZF
 * are. Serial, no I/O, no threads. */
#ifndef BAM_INFLATE_H
#define BAM_INFLATE_H

#include <stddef.h>
#include <stdint.h>

/* Serves one thread at a time. */
struct bam_inflate;

/* NULL when memory runs out. */
struct bam_inflate *bam_inflate_new(void);
/* The same for tests: makes no use of what only some processors have. */
struct bam_inflate *bam_inflate_new_portable(void);
void bam_inflate_free(struct bam_inflate *d);

/* Bytes that one takes. */
size_t bam_inflate_memory(void);

/* Inflates the stream that in[n] begins with to out[size]. -1: the stream is not
 * valid, does not end within in[n], or does not make exactly size bytes; what
 * out[size] holds is then undefined. Nothing outside in[n] is read, nothing
 * outside out[size] written. */
int bam_inflate(struct bam_inflate *d, const uint8_t *in, size_t n, uint8_t *out, size_t size);

#endif
