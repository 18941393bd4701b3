/* SPDX-License-Identifier: MIT */
/* Positions beyond 32 bits. SAM has them and BAM does not (SAMv1 sections 1.4 and 4.2). A record with such a position
 * keeps all three values in a private tag, which is its first tag:
 *
 *   \0 \0 | B | I | 6 | pos | next_pos | tlen |
 *   <------- 8 -------> <- 8 -> <- 8 -> <- 8 ->
 *
 * The 32-bit field of a value that does not fit holds the limit next to that value. So the fields alone give the right
 * order, except for ties at the limit, and the tag is searched only if a field is at its limit. Only BAM input can
 * contain such a tag: BAM output keeps it, and no other format can hold it. */
#ifndef LONG_POS_H
#define LONG_POS_H

#include <htslib/sam.h>
#include "bam/bam_record.h"

enum { LONG_POS_SIZE = 32 };      /* bytes of the tag */

/* The positions in a record: core fields of bam1_t. */
struct long_pos {
    int64_t pos, next_pos, tlen;
};

/* Returns whether one of them is beyond 32 bits. */
static inline bool long_pos_needed(const struct long_pos *far)
{
    return (int32_t)far->pos != far->pos || (int32_t)far->next_pos != far->next_pos
        || (int32_t)far->tlen != far->tlen;
}

/* Sets the three fields of r, each to its value or to the limit next to it, and writes the LONG_POS_SIZE bytes of the
 * tag. */
void long_pos_put(struct bam_record *r, uint8_t *tag, const struct long_pos *far);

/* The tag of a checked record; NULL if it has none. */
const uint8_t *long_pos_tag(const struct bam_record *r);

/* Returns the start of a checked record's other tags. */
static inline const uint8_t *long_pos_other_tags(const struct bam_record *r)
{
    return bam_record_aux(r) + (long_pos_tag(r) ? LONG_POS_SIZE : 0);
}

/* The three values of a checked record. A field that is at its limit gets the value of the tag, if there is one. */
struct long_pos long_pos_get(const struct bam_record *r);

/* The first of them only, faster. */
static inline int64_t long_pos(const struct bam_record *r)
{
    int32_t pos = bam_record_pos(r);
    return pos < INT32_MAX ? pos : long_pos_get(r).pos;
}

static inline int64_t far_next_pos(const struct bam_record *r)
{
    int32_t pos = (int32_t)load_le32(r->next_pos);
    return pos < INT32_MAX ? pos : long_pos_get(r).next_pos;
}

/* Returns whether records of this format can hold such positions (SAM), or hold no positions (FASTA, FASTQ). */
bool long_pos_fits(const htsFormat *format);

/* The length of the longest reference; 0 if there is none. */
int64_t long_pos_longest(sam_hdr_t *sam);

/* The name of the first of n references that is longer than this; NULL if there is none. */
const char *long_pos_reference(sam_hdr_t *sam, int n, int64_t longest);

#endif
