/* SPDX-License-Identifier: MIT */
/* `merge -r` gives each record the read group of its file. samtools does so when it has compared them, so the order
 * sees the group only of records that brought one. Where it looks at groups, the byte in front of a record is a mark
 * that says whether this one did. */
#ifndef GROUP_MARK_H
#define GROUP_MARK_H

#include <stdbool.h>
#include <stdint.h>
#include "bam/bam_record.h"

static inline void group_mark_set(uint8_t *record, bool brought)
{
    record[-1] = brought;
}

/* Whether the order sees the record's RG tag. marked: there are marks. */
static inline bool group_mark_sees(bool marked, const struct bam_record *record)
{
    return !marked || ((const uint8_t *)record)[-1];
}

#endif
