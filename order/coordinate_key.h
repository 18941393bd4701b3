/* SPDX-License-Identifier: MIT */
/* Coordinate order. Serial. */
#ifndef COORDINATE_KEY_H
#define COORDINATE_KEY_H

#include "bam/long_pos.h"

#define FLAG_REVERSE 0x10u

/* The key of coordinate order. `samtools sort` compares the reference ("none" last), position + 1 (unsigned) and the
 * reverse strand, and nothing else. References are below 2^31 - 1 (SAMv1 section 4.2), which leaves a value for "none".
 *
 *   63        33 32         1     0
 *   | reference | position+1 | reverse | */
static inline uint64_t coordinate_key(const struct bam_record *r)
{
    uint64_t ref = load_le32(r->ref_id) & 0x7fffffffu;
    uint64_t pos = (uint32_t)(load_le32(r->pos) + 1);
    return ref << 33 | pos << 1 | ((bam_record_flag(r) & FLAG_REVERSE) != 0);
}

/* The key if positions may exceed 32 bits. All such positions share one key, that of the last position within 32 bits
 * on the reverse strand; coordinate_key_compare() decides between them. */
static inline uint64_t coordinate_key_far(const struct bam_record *r)
{
    return coordinate_key(r) | (long_pos(r) > INT32_MAX);
}

/* Compares the coordinates of two records, including positions beyond 32 bits. Returns < 0, 0 or > 0. */
int coordinate_key_compare(const struct bam_record *a, const struct bam_record *b);

#endif
