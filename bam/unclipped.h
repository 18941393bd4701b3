/* SPDX-License-Identifier: MIT */
/* The positions where a read or its mate would begin and end if its clipped bases were aligned. All positions count
 * from 0. They are computed as unsigned numbers, because a file may contain positions and lengths of any size. */
#ifndef UNCLIPPED_H
#define UNCLIPPED_H

#include <stdbool.h>
#include "bam/bam_record.h"

/* The clips that are undone. */
enum clips { CLIPS_SOFT, CLIPS_SOFT_AND_HARD };

/* Returns the position of the record's last base if `last`, otherwise of its first base, as if its clipped bases were
 * aligned. The record was checked. If it covers no base of the reference, it ends where it begins. */
int64_t unclipped_own(const struct bam_record *r, enum clips clips, bool last);

/* Returns the same end of the record's mate, which begins at pos and has the text `cigar` (MC). Accepts many errors, as
 * samtools does: '*' ends the text, a missing number is 1, and unknown operations are skipped. A mate that covers no
 * base ends before pos, and its clips are not counted there. */
int64_t unclipped_mate(int64_t pos, const char *cigar, enum clips clips, bool last);

#endif
