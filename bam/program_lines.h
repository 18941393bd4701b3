/* SPDX-License-Identifier: MIT */
/* The @PG lines of several inputs in one header. Serial. */
#ifndef PROGRAM_LINES_H
#define PROGRAM_LINES_H

#include <htslib/sam.h>
#include "bam/record_remap.h"

/* Which ID each @PG line of an input has in the merged header. */
struct program_lines {
    int n, n_renamed;
    char **ids;                  /* by the number of the line; owned, with the texts */
};

/* Adds the @PG lines of `from` to `into`. A line that is there already is not added again. One whose ID another line
 * has gets the ID ID-XXXXXXXX, as `samtools merge` does it; but X is made of the line, so the result is always the
 * same. PP follows. -1: out of memory, or a line cannot be read; free it anyway. */
int program_lines_merge(struct program_lines *lines, sam_hdr_t *into, sam_hdr_t *from);
void program_lines_free(struct program_lines *lines);

/* Appends the header line to `to` with the value of its first field of this tag replaced. -1: out of memory. */
int program_lines_replace(kstring_t *to, const char *line, const char *tag, const char *value);

/* The ID in the merged header of the program that had this one in `from`, whose lines these are; NULL: it is the same
 * one, or there is no such line. */
const char *program_lines_new_id(const struct program_lines *lines, sam_hdr_t *from, const char *id);

/* Adds the IDs of those lines that got another one to the values of PG. -1: out of memory. */
int program_lines_values(const struct program_lines *lines, sam_hdr_t *from, struct tag_values *programs);

#endif
