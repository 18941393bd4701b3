/* SPDX-License-Identifier: MIT */
/* Converts a line of SAM (SAMv1 section 1.4) to the bytes of its BAM record (section 4.2). The rules are those of
 * samtools 1.24, whichever htslib the program is linked with: which lines are refused, how numbers are read, what is
 * corrected with a warning. Positions beyond 32 bits are kept as long_pos.h describes. Serial. */
#ifndef SAM_LINE_H
#define SAM_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "bam/sam_line_fault.h"

struct byte_buffer;
struct ref_names;

/* Corrections to a line, which samtools makes, too. Each is one bit. */
#define SAM_LINE_NOTES(X) \
    X(SAM_LINE_NO_NAME, "has no name") \
    X(SAM_LINE_UNKNOWN_REF, "names a reference that is not in the header; it became unmapped") \
    X(SAM_LINE_NO_POS, "is mapped to position 0; it became unmapped") \
    X(SAM_LINE_NO_CIGAR, "is mapped and has no CIGAR; it became unmapped") \
    X(SAM_LINE_UNKNOWN_MATE, "names a reference of its mate that is not in the header; it became '*'") \
    X(SAM_LINE_NO_MATE_POS, "has a mate at position 0; the mate's reference became '*'")

#define SAM_LINE_NOTE_NUMBER(note, text) note,
enum sam_line_note { SAM_LINE_NOTES(SAM_LINE_NOTE_NUMBER) SAM_LINE_N_NOTES };

/* The result of parsing a line. */
struct sam_line {
    enum sam_line_fault fault;
    uint32_t notes;              /* 1 << sam_line_note */
    bool far;                    /* has a position or TLEN beyond 32 bits */
};

/* Appends the record of the n bytes of a line, without its newline, to the buffer. line[n] must be '\0'. With a fault,
 * the buffer stays as it was. */
struct sam_line sam_line_append(struct byte_buffer *to, const struct ref_names *names, const char *line, size_t n);

/* The fault or the note as a phrase, as above. */
const char *sam_line_fault_text(enum sam_line_fault fault);
const char *sam_line_note_text(enum sam_line_note note);

#endif
