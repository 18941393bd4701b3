/* SPDX-License-Identifier: MIT */
/* Headers with millions of @SQ lines. htslib takes some 300 bytes for each line that it parses, and it parses a
 * header to change it. A plain header need not be parsed: of its text only the other lines, which are few, are given
 * to htslib. All results are the same. Serial.
 *
 * A header is plain if each line is as SAMv1 section 1.3 has it and htslib would write it again: @HD first, names of
 * references in their characters and no two the same, no AN, LN below 2^31, and in BAM the same references in the text
 * and behind it. Nearly all headers are. Its sam_hdr_t has text and references, but nothing parsed (hrecs is NULL), and
 * stays so until somebody calls a function of htslib that looks for lines. */
#ifndef PLAIN_HEADER_H
#define PLAIN_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <htslib/sam.h>

/* Makes a header of n bytes of text, as it stands in SAM. It belongs to the caller. NULL: it is not plain, or there is
 * no memory; htslib then may read it, or say what is wrong. */
sam_hdr_t *plain_header_of_text(const uint8_t *text, size_t n);

/* Makes a header from its form in BAM, with the same results. n_text: bytes of its text; dictionary: the n bytes that
 * follow the number of references, of which there are n_ref. */
sam_hdr_t *plain_header_of_bam(const uint8_t *text, size_t n_text, uint32_t n_ref, const uint8_t *dictionary, size_t n);

/* Whether the header is one of these two's, and nothing has parsed it since. */
static inline bool plain_header_is(const sam_hdr_t *sam)
{
    return !sam->hrecs;
}

/* The text of any header, and its n bytes; "" if it has none, where sam_hdr_str() tells of a failure. NULL: out of
 * memory. The text is the header's. */
const char *plain_header_text(sam_hdr_t *sam, size_t *n);

/* Its lines but those of @SQ, as a header of its own, which belongs to the caller. NULL: out of memory. */
sam_hdr_t *plain_header_lines(const sam_hdr_t *sam);

/* Its next @SQ line, from *at on, which is 0 before the first: n bytes without newline. False: there is none. */
bool plain_header_reference(const sam_hdr_t *sam, size_t *at, const char **line, size_t *n);

/* Puts back the lines of plain_header_lines(), in which @HD was changed or lines were added. 0: done; -1: out of
 * memory; 1: other lines were changed, which takes a parsed header. Nothing is changed then. */
int plain_header_put(sam_hdr_t *sam, sam_hdr_t *lines);

#endif
