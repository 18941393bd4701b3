/* SPDX-License-Identifier: MIT */
#ifndef BAM_FIXMATE_H
#define BAM_FIXMATE_H

struct fixmate_opts;

/* Gives the records of each template the data of their mates. Prints errors. Returns the exit status. */
int bam_fixmate(const struct fixmate_opts *opts);

#endif
