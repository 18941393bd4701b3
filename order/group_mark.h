/* SPDX-License-Identifier: MIT */
/* `merge -r` gives each record the read group of its file. samtools does so when it has compared them, so the order
 * sees the group only of records that brought one. Of a record that brought two RG tags samtools sees the second: it
 * has moved the first one behind it. Where the order looks at groups, a mark lies in front of each record:
 *
 *   ...record | second RG, from its type byte on | 0 to 7 bytes | mark | record | mark | record | ... */
#ifndef GROUP_MARK_H
#define GROUP_MARK_H

#include <stddef.h>
#include <stdint.h>
#include "base/endian_io.h"
#include "bam/bam_record.h"

enum { GROUP_MARK = 4 };         /* bytes of a mark, which is a number of 32 bits */

/* mark: 0: the record brought no group; 1: it brought the one that is in it; else so many bytes in front of it the
 * second RG begins. */
static inline void group_mark_set(uint8_t *record, uint32_t mark)
{
    store_le32(record - GROUP_MARK, mark);
}

/* The type byte of the RG tag that the order sees of a record with a mark; NULL: it sees none. own: that of its first
 * RG tag. */
static inline const uint8_t *group_mark_sees(const struct bam_record *record, const uint8_t *own)
{
    const uint8_t *p = (const uint8_t *)record;
    uint32_t mark = load_le32(p - GROUP_MARK);
    return mark == 0 ? NULL : mark == 1 ? own : p - mark;
}

#endif
