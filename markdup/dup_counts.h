/* SPDX-License-Identifier: MIT */
/* The statistics of markdup: counts for each read group, and the text or JSON made from them. Serial. */
#ifndef DUP_COUNTS_H
#define DUP_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/byte_buffer.h"
#include "base/name_table.h"

/* All fields count records. Each thread may have its own counts; they are added up. */
struct dup_counts {
    uint64_t read, written, excluded, examined;
    uint64_t paired, single;                           /* counts of the examined records */
    uint64_t duplicate_pair, duplicate_single, optical_pair, optical_single;
    uint64_t non_primary, non_primary_optical;         /* marked by -S */
};

/* Adds all fields of `other` to *sum. */
void dup_counts_add(struct dup_counts *sum, const struct dup_counts *other);

/* Estimates the number of different templates in the library from the reads of pairs that were drawn, the duplicates
 * among them, and the optical ones among those. 0: it cannot be estimated. */
uint64_t dup_counts_library(uint64_t paired, uint64_t duplicates, uint64_t optical);

/* Appends the statistics to text. command: the words of the command line, separated by one space. counts: first records
 * without read group or, if groups is NULL, all records; then each group. Return 0, or -1 if out of memory. */
int dup_counts_text(struct byte_buffer *text, const char *command, const struct dup_counts *counts,
                    const struct name_table *groups);
int dup_counts_json(struct byte_buffer *text, const char *command, const struct dup_counts *counts,
                    const struct name_table *groups);

#endif
