/* SPDX-License-Identifier: MIT */
/* The command `merge`, from start to finish. */
#ifndef BAM_MERGE_H
#define BAM_MERGE_H

#include "base/latch.h"

struct driver;
struct merge_opts;
struct engine_opts;

/* Merges sorted files into one. Prints errors. Returns the exit status. */
int bam_merge(const struct merge_opts *opts);

/* Replaces a sort (--copy-blocks) by a merge that copies blocks, if the inputs are BAM files in the requested order.
 * The merge checks the order while it writes. Call it after driver_begin(). Returns the exit status, like driver_end().
 * -1: the merge is impossible, no file is left, the driver is as before, and the report will state the reason. why:
 * receives the reason, and must live as long as the report. */
int bam_merge_for_sort(const struct engine_opts *opts, struct driver *driver, char why[static LATCH_MESSAGE]);

#endif
