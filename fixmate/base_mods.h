/* SPDX-License-Identifier: MIT */
/* The tags of base modifications, which `samtools fixmate -M` normalises (SAM tags, section 1.7):
 *
 *   MM:Z:C+m,1,0;    one base C is skipped, the next two are modified
 *   ML:B:C,200,50    how likely that is
 *   MN:i:9           length of the SEQ that they were made for
 *
 * They count along the read as it was sequenced. Aligners clip SEQ of supplementary records and leave the tags
 * unchanged, so the parts for clipped bases are cut off, using the SEQ of the primary record. Tags that do not fit
 * their SEQ are removed. Serial. */
#ifndef BASE_MODS_H
#define BASE_MODS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/byte_buffer.h"

struct bam_record;

/* Returns whether one of these tags is in [p, end). */
bool base_mods_any(const uint8_t *p, const uint8_t *end);

enum base_mods {
    BASE_MODS_NORMALISED,
    BASE_MODS_WITHOUT_LENGTH,    /* normalised, but MN, with the length of SEQ, must be appended after all other tags */
    BASE_MODS_BROKEN,            /* MN cannot be written: the existing one is not a number, or a tag cannot be read */
    BASE_MODS_NO_MEMORY,
};

/* Corrects the tags of the checked record in the buffer, which holds nothing else, and updates block_size.
 *
 * primary: for a secondary or supplementary record, the last primary one with the same READ2 flag; NULL: none. The
 * behaviour of samtools 1.24 is reproduced: it counts bases of the primary record's SEQ from the left, although that
 * may be the reverse strand; and if a chain of MM has no numbers, it uses its base for the next chain. */
enum base_mods base_mods_fix(struct byte_buffer *record, const struct bam_record *primary);

/* Returns whether the made record has all tags of the one that was read, byte for byte and in the same order, and no
 * others. Tags of base modifications, and others that fixmate may change, are ignored. */
bool base_mods_kept_others(const struct bam_record *read, const struct bam_record *made);

#endif
