/* SPDX-License-Identifier: MIT */
/* The lines of --ref-stats: length and GC of references, or of the regions in which records count (RFS). */
#ifndef STATS_REFERENCES_H
#define STATS_REFERENCES_H

#include <stdio.h>

struct stats_settings;

/* Returns -1 if out of memory. */
int stats_references_print(const struct stats_settings *settings, FILE *out);

#endif
