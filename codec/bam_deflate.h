/* SPDX-License-Identifier: MIT */
/* DEFLATE (RFC 1951) for blocks of BAM records: one call, one independent
 * stream of at most 64 KiB. Serial, no I/O, no threads. */
#ifndef BAM_DEFLATE_H
#define BAM_DEFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BAM_DEFLATE_FAST,             /* greedy: about the size of libdeflate's level 1 */
    BAM_DEFLATE_DEFAULT,          /* optimal: about the size of libdeflate's level 7 */
    BAM_DEFLATE_MAX = 65535,      /* bytes per call at most */
    BAM_DEFLATE_STORED = 5,       /* bytes that a stored block adds (section 3.2.4) */
};

/* An encoder serves one thread at a time. Its output depends on its input only, not on earlier calls or the machine. */
struct bam_deflate;

/* Makes an encoder; free it with free(). effort: BAM_DEFLATE_FAST or BAM_DEFLATE_DEFAULT. portable: use no instructions
 * that only some processors have, for tests. Returns NULL if there is no memory. */
struct bam_deflate *bam_deflate_new(int effort, bool portable);

/* Returns the bytes of memory that an encoder takes. */
size_t bam_deflate_memory(void);

/* Compresses in[n], n <= BAM_DEFLATE_MAX, to out[cap]. Returns the size, or 0 if the output does not fit. The output
 * needs n + BAM_DEFLATE_STORED bytes at most. Nothing beyond out + cap is touched. */
size_t bam_deflate(struct bam_deflate *d, const uint8_t *in, size_t n, uint8_t *out, size_t cap);

/* Makes a block without compression. Returns the size, or 0 if the output does not fit. `in` may be
 * out + BAM_DEFLATE_STORED. */
size_t bam_deflate_store(const uint8_t *in, size_t n, uint8_t *out, size_t cap);

#endif
