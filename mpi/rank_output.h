/* SPDX-License-Identifier: MIT */
/* Writes what a rank has in the end, and brings all ranks' blocks into one file. */
#ifndef RANK_OUTPUT_H
#define RANK_OUTPUT_H

struct rank_parts;

/* Every rank calls it behind the exchange. The file has no name yet. -1: failed, and all know. */
int rank_output(struct rank_parts *parts);

#endif
