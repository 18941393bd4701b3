/* SPDX-License-Identifier: MIT */
/* Corrections of single records by `samtools fixmate -z`: invalid places, alignments that extend beyond the end of
 * their reference, and fields that unmapped reads must not have. Serial. */
#ifndef SANITIZE_H
#define SANITIZE_H

#include <stdbool.h>
#include <stdint.h>
#include <htslib/sam.h>
#include "base/byte_buffer.h"

struct bam_record;

enum sanitize {
    SANITIZE_POS = 1,            /* a record without a reference gets no position */
    SANITIZE_MAPQ = 2,           /* an unmapped record gets MAPQ 0 */
    SANITIZE_UNMAP = 4,          /* a record without a possible position becomes unmapped */
    SANITIZE_CIGAR = 8,          /* CIGAR is clipped at the end of the reference; an unmapped record gets none */
    SANITIZE_AUX = 16,           /* an unmapped record loses NM, MD, CG and SM */
    SANITIZE_CIGAR_JOIN = 32,    /* equal adjacent operations are joined, and none has length 0 */
    SANITIZE_CIGAR_M = 64,       /* = and X become M, and equal adjacent operations are joined */
    SANITIZE_ON = SANITIZE_MAPQ | SANITIZE_UNMAP | SANITIZE_CIGAR | SANITIZE_AUX,
    SANITIZE_ALL = SANITIZE_ON | SANITIZE_POS | SANITIZE_CIGAR_JOIN,
};

/* Reads a comma-separated list of words: "all" or "*", "none" or "off", "on", and one for each of the above. -1: one is
 * unknown. Only the beginning of a word is compared, as in samtools. */
int sanitize_parse(const char *list, unsigned *what);

/* Returns whether sanitize() would change the checked record; it may return true although nothing changes. */
bool sanitize_changes(const struct bam_record *record, unsigned what, const int64_t *lengths);

/* Corrects b. lengths: of the references. cigar: memory of the caller, with no defined contents. -1: failed, with
 * errno: EBADMSG: the tags of an unmapped read cannot be read; any other: out of memory. */
int sanitize(bam1_t *b, unsigned what, const int64_t *lengths, struct byte_buffer *cigar);

#endif
