/* SPDX-License-Identifier: MIT */
/* Headers with millions of @SQ lines. htslib needs some 300 bytes for each line that it parses, and it parses a header
 * to change it. A plain header need not be parsed: only its other lines, which are few, are given to htslib. All
 * results are the same. Serial.
 *
 * A header is plain if each line follows SAMv1 section 1.3 and htslib would write it unchanged: @HD first, valid and
 * different names of references, no AN, LN below 2^31, and in BAM the same references in the text and in the list after
 * it. Nearly all headers are plain. The sam_hdr_t has text and references, but nothing parsed (hrecs is NULL), until an
 * htslib function that looks up lines is called. */
#ifndef PLAIN_HEADER_H
#define PLAIN_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <htslib/sam.h>

/* Makes a header from n bytes of SAM text. The caller frees it. NULL: it is not plain, or memory ran out; then htslib
 * can read it, or report the fault. */
sam_hdr_t *plain_header_of_text(const uint8_t *text, size_t n);

/* Makes a header from its form in BAM, with the same results. n_text: size of its text; dictionary: the n bytes that
 * follow the number of references, n_ref. */
sam_hdr_t *plain_header_of_bam(const uint8_t *text, size_t n_text, uint32_t n_ref, const uint8_t *dictionary, size_t n);

/* Returns whether the header was made by one of these two, and nothing has parsed it since. */
static inline bool plain_header_is(const sam_hdr_t *sam)
{
    return !sam->hrecs;
}

/* The text of any header, of *n bytes; "" if it has none, where sam_hdr_str() reports a failure. NULL: out of memory.
 * The header owns the text. */
const char *plain_header_text(sam_hdr_t *sam, size_t *n);

/* Its lines except @SQ, as a separate header, which the caller frees. NULL: out of memory. */
sam_hdr_t *plain_header_lines(const sam_hdr_t *sam);

/* The next @SQ line from *at on: n bytes without newline. *at is 0 before the first. False: there is none. */
bool plain_header_reference(const sam_hdr_t *sam, size_t *at, const char **line, size_t *n);

/* Puts back the lines of plain_header_lines() after @HD was changed or lines were added. 0: done; -1: out of memory; 1:
 * other lines were changed, which only a parsed header allows; nothing is changed then. */
int plain_header_put(sam_hdr_t *sam, sam_hdr_t *lines);

#endif
