/* SPDX-License-Identifier: MIT */
/* The command `merge`, from beginning to end. */
#ifndef BAM_MERGE_H
#define BAM_MERGE_H

struct driver;
struct merge_opts;
struct engine_opts;

/* Merges sorted files into one. Prints what went wrong. The result is the exit status. */
int bam_merge(const struct merge_opts *opts);

/* Does what a sort is to do (--copy-blocks) by a merge, whose blocks are copied, if the inputs are BAM files in the
 * order asked for. Finds out whether they are while it writes. The driver is new, but its report is open. The
 * result is the exit status, as of driver_end(); -1: it cannot be done, nothing is left of it, the driver is as it was,
 * and the report will say why. */
int bam_merge_for_sort(const struct engine_opts *opts, struct driver *driver);

#endif
