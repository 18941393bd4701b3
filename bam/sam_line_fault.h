/* SPDX-License-Identifier: MIT */
#ifndef SAM_LINE_FAULT_H
#define SAM_LINE_FAULT_H

/* Faults of a line, as phrases that follow its number in a message. */
#define SAM_LINE_FAULTS(X) \
    X(SAM_LINE_OK, "is whole") \
    X(SAM_LINE_CUT, "is broken or cut off: it has fewer than the 11 fields of SAM") \
    X(SAM_LINE_NAME, "has a name of more than 254 characters") \
    X(SAM_LINE_FLAG, "has a FLAG that is not a number from 0 to 65535") \
    X(SAM_LINE_NO_REFS, "names a reference, but the header has no @SQ lines") \
    X(SAM_LINE_POS, "has a POS that is not a number from 0 to 2^62-1") \
    X(SAM_LINE_MAPQ, "has a MAPQ that is not a number from 0 to 255") \
    X(SAM_LINE_CIGAR, "has a CIGAR that cannot be read") \
    X(SAM_LINE_NEXT_POS, "has a PNEXT that is not a number from 0 to 2^62-1") \
    X(SAM_LINE_TLEN, "has a TLEN that is not a number") \
    X(SAM_LINE_SEQ, "has a CIGAR and a SEQ of different lengths") \
    X(SAM_LINE_QUAL, "has a SEQ and a QUAL of different lengths") \
    X(SAM_LINE_QUAL_VALUE, "has an invalid character in QUAL") \
    X(SAM_LINE_TAG, "has an optional field that cannot be read") \
    X(SAM_LINE_TAG_RANGE, "has a number in an optional field that its type cannot hold") \
    X(SAM_LINE_CG, "has a CIGAR that BAM cannot hold, or a CG tag that cannot be read") \
    X(SAM_LINE_LONG, "is too long for BAM (SAMv1 section 4.2)") \
    X(SAM_LINE_NO_MEMORY, "cannot be read: out of memory")

#define SAM_LINE_NUMBER(fault, text) fault,
enum sam_line_fault { SAM_LINE_FAULTS(SAM_LINE_NUMBER) };

#endif
