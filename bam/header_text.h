/* SPDX-License-Identifier: MIT */
/* The text of a SAM or BAM header (SAMv1 section 1.3) before htslib gets it. Older versions of htslib pass what
 * samtools 1.24 refuses, or lose a line: a length of 0, two lengths of one reference, lines too short, a bare @CO.
 * Serial. */
#ifndef HEADER_TEXT_H
#define HEADER_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* The result of reading a header text. */
struct header_text {
    const char *fault;           /* of the line, in words that follow its number in a message; NULL: none */
    size_t number;               /* of that line, from 1 on */
    const char *line;            /* its size bytes, without newline */
    size_t size;
    size_t n_to_normalise;       /* lines that are "@CO" and nothing else; in SAM, also those that have a NUL */
    size_t n_repeated;           /* lengths that stand in their @SQ line a second time; htslib may change the first */
};

/* Looks at all lines as samtools 1.24 does. In SAM, it leaves out a carriage return before a newline, takes a bare
 * @CO, and only the five types of lines. In BAM, a last line of one or two characters is none. */
struct header_text header_text_check(const char *text, size_t size, bool is_sam);

/* Whether a text whose lines are broken can be read at all as the header of BAM: all lines up to its first NUL begin
 * with @. */
bool header_text_is_bam(const char *text, size_t size);

/* Whether the text can be read as the header of SAM; records follow it. */
bool header_text_is_sam(const char *text, size_t size);

/* Copies the text of a SAM header as samtools 1.24 reads it: a tab stands behind each bare @CO, a line ends before its
 * first NUL, and no carriage return stands before a newline. `to` must have room for size + n_to_normalise bytes.
 * Returns how many it wrote. */
size_t header_text_normalise(char *to, const char *text, size_t size);

#endif
