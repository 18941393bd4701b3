/* SPDX-License-Identifier: MIT */
#ifndef BAM_SORMADUP_H
#define BAM_SORMADUP_H

struct sormadup_opts;

/* Fixes the mates of records that are grouped by name, sorts them by coordinate, and marks duplicates. Prints errors.
 * Returns the exit status. */
int bam_sormadup(const struct sormadup_opts *opts);

#endif
