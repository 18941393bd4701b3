/* SPDX-License-Identifier: MIT */
/* `merge -r` gives each record the read group of its file. samtools does so after it has compared the records, so the
 * order sees only groups that records had before. If a record had two RG tags, samtools sees the second, because it has
 * moved the first one after it. If the order depends on groups, a mark comes before each record:
 *
 *   ...record | second RG, from its type byte on | 0 to 7 bytes | mark | record | mark | record | ... */
#ifndef GROUP_MARK_H
#define GROUP_MARK_H

#include <stddef.h>
#include <stdint.h>
#include "base/endian_io.h"
#include "bam/bam_record.h"

enum { GROUP_MARK = 4 };         /* size of a mark, a 32-bit number */

/* mark: 0: the record had no group; 1: it had the one that it has now; otherwise the second RG begins this many bytes
 * before it. */
static inline void group_mark_set(uint8_t *record, uint32_t mark)
{
    store_le32(record - GROUP_MARK, mark);
}

/* The type byte of the RG tag that the order uses for a record with a mark; NULL: none. own: type byte of its first RG
 * tag. */
static inline const uint8_t *group_mark_sees(const struct bam_record *record, const uint8_t *own)
{
    const uint8_t *p = (const uint8_t *)record;
    uint32_t mark = load_le32(p - GROUP_MARK);
    return mark == 0 ? NULL : mark == 1 ? own : p - mark;
}

#endif
