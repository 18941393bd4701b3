/* SPDX-License-Identifier: MIT */
/* Converts htslib's bam1_t to the bytes of a BAM record and back (SAMv1 section 4.2). Positions beyond 32 bits are kept
 * as long_pos.h describes. */
#ifndef BAM1_BYTES_H
#define BAM1_BYTES_H

#include <htslib/sam.h>

struct bam_record;
struct byte_buffer;

/* Appends the bytes of b. A CIGAR of more than 65,535 operations goes into a CG tag. Returns 0; 1 if b was appended
 * and has a position or TLEN beyond 32 bits; -1 with errno ENOMEM, or EOVERFLOW if b does not fit into BAM. */
int bam1_bytes_append(struct byte_buffer *to, const bam1_t *b);

/* Fills b from the checked record r. A CIGAR in the CG tag becomes the CIGAR of b. Returns 0, or -1 if out of
 * memory. */
int bam1_from_record(bam1_t *b, const struct bam_record *r);

#endif
