/* SPDX-License-Identifier: MIT */
/* Messages about lines of SAM: about the line at which the command fails, and about lines that are changed. A number
 * alone says little about a line that came through a pipe, so each message shows the beginning of the line. Serial. */
#ifndef SAM_NOTES_H
#define SAM_NOTES_H

#include <stddef.h>
#include <stdint.h>
#include "bam/sam_line.h"

enum { SAM_EXCERPT_SIZE = 360 };

/* A line that is shown. */
struct sam_place {
    uint64_t number;             /* number of its record, counted from 0 at the beginning of the notes */
    char excerpt[SAM_EXCERPT_SIZE];
};

/* Lines that are changed, by kind. */
struct sam_notes {
    uint64_t n[SAM_LINE_N_NOTES];
    struct sam_place first[SAM_LINE_N_NOTES];
};

/* Writes `The line begins "..."`, and what the line seems to be if it is not SAM, as a separate text. */
void sam_notes_excerpt(char text[SAM_EXCERPT_SIZE], const char *line, size_t size);

/* Counts the notes on a line of n bytes, of record `number`. */
void sam_notes_add(struct sam_notes *notes, uint32_t found, uint64_t number, const char *line, size_t n);

/* Adds notes whose record 0 is record `before` of the input. A warning reports the first line of each kind.
 * header_lines: lines of the input before record 0; UINT64_MAX: not known. */
void sam_notes_merge(struct sam_notes *all, const struct sam_notes *more, uint64_t before, uint64_t header_lines,
                     const char *path);

/* For each kind with more than one line, writes a warning with the number of lines. Then clears the notes. */
void sam_notes_total(struct sam_notes *all, const char *path);

#endif
