/* SPDX-License-Identifier: MIT */
/* Programs of an input that have other IDs in the merged header, and the PG tags of its records. Serial. */
#ifndef PROGRAM_NAMES_H
#define PROGRAM_NAMES_H

#include <stddef.h>
#include "base/byte_buffer.h"
#include "bam/bam_record.h"

struct program_name {
    char *from, *to;             /* the ID in the input, and in the merged header; owned */
};

/* A list of all zeros is empty. */
struct program_names {
    struct program_name *each;   /* in the order of `from`, once sorted; owned */
    size_t n;
};

/* Adds a copy of the pair. -1: no memory. */
int program_names_add(struct program_names *names, const char *from, const char *to);

/* Call it after the last pair is added, and before the first is looked for. */
void program_names_sort(struct program_names *names);
void program_names_free(struct program_names *names);

/* Appends the checked record to `to`. If its first PG tag is a string that names one of these programs, the tag gets
 * the new ID and becomes the last one, as by samtools merge (1.24); else nothing is changed. 1: changed; 0: not; -1:
 * no memory; -2: the record would be longer than BAM holds. */
int program_names_append(const struct program_names *names, struct byte_buffer *to, const struct bam_record *record);

#endif
