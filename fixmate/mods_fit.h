/* SPDX-License-Identifier: MIT */
/* Whether tags of base modifications fit to their SEQ, as htslib looks at them (fixmate/base_mods.h). */
#ifndef MODS_FIT_H
#define MODS_FIT_H

#include <stdbool.h>

struct bam_record;

/* Whether MM, ML and MN of a checked record are sound, and fit to SEQ. What htslib takes, is. */
bool mods_fit(const struct bam_record *record);

#endif
