/* SPDX-License-Identifier: MIT */
/* Positions beyond 32 bits, which SAM has and BAM has not (SAMv1 sections 1.4
 * and 4.2). A record that has one keeps all three in a private tag, the first
 * of its tags:
 *
 *   \0 \0 | B | I | 6 | pos | next_pos | tlen |
 *   <------- 8 -------> <- 8 -> <- 8 -> <- 8 ->
 *
 * and in the 32-bit field of a value that does not fit the limit next to it. So
 * the fields alone give the right order, but for ties at that limit, and the tag
 * is looked for only where a field is at it. No such tag comes in: htslib takes
 * letters and digits only in SAM, and in CRAM NUL ends the list of tags. In BAM
 * it could; BAM output keeps it, and no other format could hold it. */
#ifndef FAR_POS_H
#define FAR_POS_H

#include <stdbool.h>
#include <stdint.h>
#include <htslib/sam.h>
#include "bam/bam_record.h"

enum { FAR_POS_SIZE = 32 };      /* bytes of the tag */

/* What a record says of places: the core fields of bam1_t. */
struct far_pos {
    int64_t pos, next_pos, tlen;
};

/* Whether one of them is beyond 32 bits. */
static inline bool far_pos_needed(const struct far_pos *far)
{
    return (int32_t)far->pos != far->pos || (int32_t)far->next_pos != far->next_pos
        || (int32_t)far->tlen != far->tlen;
}

/* Fills the three fields of r, as near as they go, and the FAR_POS_SIZE bytes of its tag. */
void far_pos_put(struct bam_record *r, uint8_t *tag, const struct far_pos *far);

/* The tag of a checked record; NULL without. */
const uint8_t *far_pos_tag(const struct bam_record *r);

/* The three as they are: of each the tag's value, if its field is at the limit
 * and the record has the tag. */
struct far_pos far_pos_get(const struct bam_record *r);

/* One of them. */
static inline int64_t far_pos(const struct bam_record *r)
{
    int32_t pos = bam_record_pos(r);
    return pos < INT32_MAX ? pos : far_pos_get(r).pos;
}

static inline int64_t far_next_pos(const struct bam_record *r)
{
    int32_t pos = (int32_t)load_le32(r->next_pos);
    return pos < INT32_MAX ? pos : far_pos_get(r).next_pos;
}

static inline int64_t far_tlen(const struct bam_record *r)
{
    int32_t tlen = (int32_t)load_le32(r->tlen);
    return tlen < INT32_MAX && tlen > INT32_MIN ? tlen : far_pos_get(r).tlen;
}

/* Whether records of this format can say such positions, or say none at all. */
bool far_pos_fits(const htsFormat *format);

/* The first reference longer than 2^31-1; NULL: there is none. */
const char *far_pos_reference(sam_hdr_t *sam);

#endif
