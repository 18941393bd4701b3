/* SPDX-License-Identifier: MIT */
/* The counter of `samtools stats -S TAG`: all records are counted, and those of each value of the tag once more. Its
 * text is that of all; each value has a file. */
#ifndef STATS_SPLIT_H
#define STATS_SPLIT_H

#include "stats/counter.h"

struct stats_settings;

/* As stats_counter(). */
struct counter stats_split_counter(struct stats_settings *settings);

#endif
