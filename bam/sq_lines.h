/* SPDX-License-Identifier: MIT */
/* The @SQ lines of a header, one by one, and their fields. Serial. */
#ifndef SQ_LINES_H
#define SQ_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <htslib/kstring.h>
#include <htslib/sam.h>

/* Set `sam` and zero the rest; ks_free() frees `parsed`. */
struct sq_lines {
    sam_hdr_t *sam;
    size_t at;                   /* offset in the text of a plain header */
    kstring_t parsed;            /* the line of any other header; owned */
    const char *line;            /* the last one */
    size_t n;                    /* its size without newline */
};

/* Moves to the line of reference i. Call it for 0, 1, ... in turn. False: it cannot be read. */
bool sq_lines_next(struct sq_lines *lines, int32_t i);

/* The value of a line's first field of this tag, "\tAB:", of *size bytes; NULL: there is none. */
const char *sq_lines_field(const char *line, size_t n, const char *tag, size_t *size);

/* Appends to `text` how two lines with the same name (SN) contradict each other: in LN, or in M5 if both have one. 1:
 * they contradict; 0: they do not, or have different names; -1: out of memory. */
int sq_lines_clash(const char *line, size_t n, const char *before, size_t n_before, kstring_t *text);

#endif
