/* SPDX-License-Identifier: MIT */
/* htslib's bam1_t to the bytes of a BAM record and back (SAMv1 section 4.2),
 * positions beyond 32 bits as far_pos.h has them. */
#ifndef BAM1_BYTES_H
#define BAM1_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <htslib/sam.h>

struct bam_record;

/* Records, one behind the other; all zero: none. */
struct bam1_bytes {
    uint8_t *data;
    size_t size, max;
    bool far;                    /* one has a position or TLEN beyond 32 bits */
};

/* Adds the bytes of b, CIGARs over 65,535 operations kept in a CG tag.
 * -1: errno is ENOMEM, or EOVERFLOW if b does not fit into BAM. */
int bam1_bytes_append(struct bam1_bytes *bytes, const bam1_t *b);

/* The same, b being the only one. */
int bam1_bytes_set(struct bam1_bytes *bytes, const bam1_t *b);

/* Room for so many bytes in all. -1: no memory; errno is ENOMEM. */
int bam1_bytes_reserve(struct bam1_bytes *bytes, size_t size);
void bam1_bytes_clear(struct bam1_bytes *bytes);
void bam1_bytes_free(struct bam1_bytes *bytes);

/* The checked record r as bam1_t, its CIGAR moved out of the CG tag. -1: no memory. */
int bam1_from_record(bam1_t *b, const struct bam_record *r);

#endif
