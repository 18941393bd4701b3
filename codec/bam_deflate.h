/* SPDX-License-Identifier: MIT */
/* DEFLATE (RFC 1951) for blocks of BAM records: one call, one independent
 * stream of at most 64 KiB. Serial, no I/O, no threads. */
#ifndef BAM_DEFLATE_H
#define BAM_DEFLATE_H

#include <stddef.h>
#include <stdint.h>

enum {
    BAM_DEFLATE_FAST,             /* greedy: about the size of libdeflate's level 1 */
    BAM_DEFLATE_DEFAULT,          /* lazy: about the size of libdeflate's level 7 */
    BAM_DEFLATE_MAX = 65535,      /* bytes per call at most */
};

/* Serves one thread at a time. What it writes depends on its input only, not on
 * earlier calls nor on the machine. */
struct bam_deflate;

/* effort: BAM_DEFLATE_FAST or BAM_DEFLATE_DEFAULT; NULL when memory runs out. */
struct bam_deflate *bam_deflate_new(int effort);
/* The same for tests: makes no use of what only some processors have. */
struct bam_deflate *bam_deflate_new_portable(int effort);
void bam_deflate_free(struct bam_deflate *d);

/* Compresses in[n], n <= BAM_DEFLATE_MAX, to out[cap]; returns the size, 0 if it
 * does not fit. At most n + 5 bytes are ever needed. Nothing beyond out + cap is
 * touched. */
size_t bam_deflate(struct bam_deflate *d, const uint8_t *in, size_t n, uint8_t *out, size_t cap);

#endif
