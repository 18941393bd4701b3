/* SPDX-License-Identifier: MIT */
/* The 64-bit key by which records are sorted. */
#ifndef SORT_KEY_H
#define SORT_KEY_H

#include <stdint.h>
#include "bam_record.h"

#define FLAG_REVERSE 0x10u

/* Coordinate order of `samtools sort`: reference (none last), position + 1,
 * reverse strand; nothing else.
 *
 *   63        33 32         1     0
 *   | reference | position+1 | reverse |
 *
 * 31 bits hold every refID (at most 2^31-2, SAMv1 section 4.2) and one more
 * value for "none"; 32 bits hold position+1, unsigned, as samtools compares it. */
static inline uint64_t sort_key_coordinate(const struct bam_record *r)
{
    uint64_t ref = load_le32(r->ref_id) & 0x7fffffffu;
    uint64_t pos = (uint32_t)(load_le32(r->pos) + 1);
    return ref << 33 | pos << 1 | ((bam_record_flag(r) & FLAG_REVERSE) != 0);
}

#endif
