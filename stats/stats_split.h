/* SPDX-License-Identifier: MIT */
/* The counter of `samtools stats -S TAG`: all records are counted, and those of each value of the tag once more. Its
 * text is that of all; each value has a file. */
#ifndef STATS_SPLIT_H
#define STATS_SPLIT_H

#include "stats/counter.h"

/* Makes it of the counter of all records. */
struct counter stats_split_counter(struct counter all);

#endif
