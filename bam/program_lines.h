/* SPDX-License-Identifier: MIT */
/* The @PG lines of several inputs in one header. Serial. */
#ifndef PROGRAM_LINES_H
#define PROGRAM_LINES_H

#include <htslib/sam.h>
#include "bam/record_remap.h"

/* The ID that each @PG line of an input has in the merged header. */
struct program_lines {
    int n, n_renamed;
    char **ids;                  /* by the number of the line; owned, with the texts */
};

/* Adds the @PG lines of `from` to `into`. A line that is there already is not added again. A line whose ID is in use
 * gets the ID ID-XXXXXXXX, as in `samtools merge`; but here X is a hash of the line, so the result is always the same.
 * PP follows. -1: out of memory, or a line cannot be read; the caller still frees `lines`. */
int program_lines_merge(struct program_lines *lines, sam_hdr_t *into, sam_hdr_t *from);
void program_lines_free(struct program_lines *lines);

/* Appends the header line to `to`, with a new value in its first field of this tag. -1: out of memory. */
int program_lines_replace(kstring_t *to, const char *line, const char *tag, const char *value);

/* The new ID of the program with this ID in `from`, the header of these lines; NULL: it keeps its ID, or no line has
 * it. */
const char *program_lines_new_id(const struct program_lines *lines, sam_hdr_t *from, const char *id);

/* Adds the old and new IDs of lines that were renamed to the values of PG. -1: out of memory. */
int program_lines_values(const struct program_lines *lines, sam_hdr_t *from, struct tag_values *programs);

#endif
