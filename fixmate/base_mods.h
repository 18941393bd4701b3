/* SPDX-License-Identifier: MIT */
/* The tags of base modifications, which `samtools fixmate -M` normalises (SAM tags, section 1.7):
 *
 *   MM:Z:C+m,1,0;    of the bases C one is passed over, the next two are modified
 *   ML:B:C,200,50    how likely that is
 *   MN:i:9           bases of the SEQ that they were made for
 *
 * They count along the read as it was sequenced. Aligners clip SEQ of supplementary records and leave the tags as they
 * are; so what belongs to clipped bases is cut off, by the SEQ of the primary record. Tags that do not fit to their SEQ
 * are taken away. Serial. */
#ifndef BASE_MODS_H
#define BASE_MODS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/byte_buffer.h"

struct bam_record;

/* Whether one of them is among the tags [p, end). */
bool base_mods_any(const uint8_t *p, const uint8_t *end);

enum base_mods {
    BASE_MODS_NORMALISED,
    BASE_MODS_WITHOUT_LENGTH,    /* so; and MN, with the length of SEQ, must be put behind all other tags */
    BASE_MODS_BROKEN,            /* MN cannot be put: the one that is there is no number, or a tag cannot be read */
    BASE_MODS_NO_MEMORY,
};

/* Normalises those of the checked record in the buffer; nothing else is there, and block_size is kept right.
 *
 * primary: of a secondary or supplementary record the last primary one of the same half; NULL: there is none. What
 * samtools 1.24 does is kept: it counts bases of the primary record's SEQ from the left, though that may be the reverse
 * strand; and where a chain of MM has no numbers, it takes its base for that of the next one. */
enum base_mods base_mods_fix(struct byte_buffer *record, const struct bam_record *primary);

/* Whether the made record has all tags of the one that was read, byte for byte and in the same order, and no others.
 * Those of base modifications, and others that fixmate may change, do not count. */
bool base_mods_kept_others(const struct bam_record *read, const struct bam_record *made);

#endif
