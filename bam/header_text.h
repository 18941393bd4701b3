/* SPDX-License-Identifier: MIT */
/* The text of a SAM or BAM header (SAMv1 section 1.3) before htslib gets it. Older versions of htslib accept text that
 * samtools 1.24 refuses, or lose a line: a length of 0, two lengths of one reference, lines that are too short, a bare
 * @CO. Serial. */
#ifndef HEADER_TEXT_H
#define HEADER_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* The result of reading a header text. */
struct header_text {
    const char *fault;           /* fault of the line, as a phrase that follows its number in a message;
                                  * NULL: none */
    size_t number;               /* number of that line, from 1 */
    const char *line;            /* the `size` bytes of the line, without its newline */
    size_t size;
    size_t n_to_normalise;       /* number of lines that are only "@CO"; in SAM, also of lines that contain a NUL */
    size_t n_repeated;           /* number of second lengths in one @SQ line; htslib may change the first length */
};

/* Checks all lines as samtools 1.24 does. In SAM, a carriage return before a newline is dropped, a bare @CO is
 * accepted, and lines of types other than the five are refused. In BAM, a last line of one or two characters is
 * ignored. */
struct header_text header_text_check(const char *text, size_t size, bool is_sam);

/* Returns whether a text with broken lines can still be read as the header of a BAM: all lines up to its first NUL
 * begin with @. */
bool header_text_is_bam(const char *text, size_t size);

/* Returns whether the text can be read as the header of a SAM that has records. */
bool header_text_is_sam(const char *text, size_t size);

/* Copies the text of a SAM header as samtools 1.24 reads it: each bare @CO gets a tab, a line ends before its first
 * NUL, and a carriage return before a newline is dropped. `to` must have room for size + n_to_normalise bytes. Returns
 * the number of bytes written. */
size_t header_text_normalise(char *to, const char *text, size_t size);

#endif
