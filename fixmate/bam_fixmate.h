/* SPDX-License-Identifier: MIT */
#ifndef BAM_FIXMATE_H
#define BAM_FIXMATE_H

struct fixmate_opts;

/* Tells the mates of each template of each other. Prints what went wrong. The result is the exit status. */
int bam_fixmate(const struct fixmate_opts *opts);

#endif
