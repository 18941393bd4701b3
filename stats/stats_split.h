/* SPDX-License-Identifier: MIT */
/* The counter of `samtools stats -S TAG`. It counts all records, and counts the records of each value of the tag once
 * more. Its text is about all records; each value has a file of its own. */
#ifndef STATS_SPLIT_H
#define STATS_SPLIT_H

#include "stats/counter.h"

/* Makes it from the counter of all records. */
struct counter stats_split_counter(struct counter all);

#endif
