/* SPDX-License-Identifier: MIT */
/* Writes the records that a rank has at the end, and puts the blocks of all ranks into one file. */
#ifndef RANK_OUTPUT_H
#define RANK_OUTPUT_H

struct rank_parts;

/* Every rank calls it after the exchange. The file has no name yet. -1: failed, and all ranks know. */
int rank_output(struct rank_parts *parts);

#endif
