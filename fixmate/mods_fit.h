/* SPDX-License-Identifier: MIT */
/* Checks whether tags of base modifications fit their SEQ, as htslib does (fixmate/base_mods.h). */
#ifndef MODS_FIT_H
#define MODS_FIT_H

#include <stdbool.h>

struct bam_record;

/* Returns whether MM, ML and MN of a checked record are valid and fit SEQ. All tags that htslib accepts do. */
bool mods_fit(const struct bam_record *record);

#endif
