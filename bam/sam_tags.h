/* SPDX-License-Identifier: MIT */
/* Converts the optional fields of a line of SAM (SAMv1 section 1.5) to the bytes of BAM (section 4.2.4). */
#ifndef SAM_TAGS_H
#define SAM_TAGS_H

#include <stdbool.h>
#include "bam/sam_line_fault.h"

struct byte_buffer;

/* Bytes of room for each tag besides its text. */
enum { SAM_TAGS_ROOM = 24 };

/* Appends the fields in [p, end), where *end is '\0'. Sets *has_cg if a field is named CG. */
enum sam_line_fault sam_tags_append(struct byte_buffer *to, const char *p, const char *end, bool *has_cg);

#endif
