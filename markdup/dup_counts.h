/* SPDX-License-Identifier: MIT */
/* The statistics of markdup: counts for each read group, and the text or JSON that is made of them. Serial. */
#ifndef DUP_COUNTS_H
#define DUP_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/byte_buffer.h"
#include "base/name_table.h"

/* All count records. Threads may each have their own, and add them up. */
struct dup_counts {
    uint64_t read, written, excluded, examined;
    uint64_t paired, single;                           /* of the examined ones */
    uint64_t duplicate_pair, duplicate_single, optical_pair, optical_single;
    uint64_t non_primary, non_primary_optical;         /* that -S marked */
};

void dup_counts_add(struct dup_counts *sum, const struct dup_counts *other);

/* How many different templates the library has, by what was drawn from it: reads of pairs, how many of them are
 * duplicates, and how many of those optical. 0: that cannot be told. */
uint64_t dup_counts_library(uint64_t paired, uint64_t duplicates, uint64_t optical);

/* Appends the statistics to text. command: the words of the command line with one space between. counts: of records
 * without read group or, where groups is NULL, of all; then of each group. Return 0, or -1 if there is no memory. */
int dup_counts_text(struct byte_buffer *text, const char *command, const struct dup_counts *counts,
                    const struct name_table *groups);
int dup_counts_json(struct byte_buffer *text, const char *command, const struct dup_counts *counts,
                    const struct name_table *groups);

#endif
