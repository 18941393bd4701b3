/* SPDX-License-Identifier: MIT */
/* What `samtools fixmate` normalises in each record by itself (-z): places that are none, alignments that hang over the
 * end of their reference, and what unmapped reads do not have. Serial. */
#ifndef SANITIZE_H
#define SANITIZE_H

#include <stdbool.h>
#include <stdint.h>
#include <htslib/sam.h>
#include "base/byte_buffer.h"

struct bam_record;

enum sanitize {
    SANITIZE_POS = 1,            /* no reference: no position */
    SANITIZE_MAPQ = 2,           /* unmapped: MAPQ 0 */
    SANITIZE_UNMAP = 4,          /* no place: unmapped */
    SANITIZE_CIGAR = 8,          /* within the reference; unmapped: none */
    SANITIZE_AUX = 16,           /* unmapped: no NM, MD, CG, SM */
    SANITIZE_CIGAR_JOIN = 32,    /* equal neighbours are one operation, and none has length 0 */
    SANITIZE_CIGAR_M = 64,       /* = and X are M; and the same */
    SANITIZE_ON = SANITIZE_MAPQ | SANITIZE_UNMAP | SANITIZE_CIGAR | SANITIZE_AUX,
    SANITIZE_ALL = SANITIZE_ON | SANITIZE_POS | SANITIZE_CIGAR_JOIN,
};

/* Reads a comma list of words: "all" or "*", "none" or "off", "on", and one for each of the above. -1: one is unknown.
 * Only the beginning of a word counts, as in samtools. */
int sanitize_parse(const char *list, unsigned *what);

/* Whether that changes the checked record; it may say so though nothing changes. */
bool sanitize_changes(const struct bam_record *record, unsigned what, const int64_t *lengths);

/* Normalises b. lengths: of the references. cigar: memory of the caller's, whose contents mean nothing. -1:
 * failed, with errno: EBADMSG means that the tags of an unmapped read cannot be read, all else that there is no
 * memory. */
int sanitize(bam1_t *b, unsigned what, const int64_t *lengths, struct byte_buffer *cigar);

#endif
