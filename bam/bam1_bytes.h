/* SPDX-License-Identifier: MIT */
/* htslib's bam1_t to the bytes of a BAM record and back (SAMv1 section 4.2),
 * positions beyond 32 bits as far_pos.h has them. */
#ifndef BAM1_BYTES_H
#define BAM1_BYTES_H

#include <htslib/sam.h>

struct bam_record;
struct byte_buffer;

/* Appends the bytes of b, CIGARs over 65,535 operations kept in a CG tag. 0: done; 1: done, and it has a
 * position or TLEN beyond 32 bits; -1: errno is ENOMEM, or EOVERFLOW if b does not fit into BAM. */
int bam1_bytes_append(struct byte_buffer *to, const bam1_t *b);

/* The checked record r as bam1_t, its CIGAR moved out of the CG tag. -1: no memory. */
int bam1_from_record(bam1_t *b, const struct bam_record *r);

#endif
