/* SPDX-License-Identifier: MIT */
/* One file of the ranks' blocks. */
#ifndef OUTPUT_GATHER_H
#define OUTPUT_GATHER_H

#include <stdint.h>
#include "mpi/mpi_team.h"

/* A rank's own blocks. */
struct output_part {
    int fd;                      /* a regular BGZF file, which stands at its end */
    const char *path;            /* for messages */
    const char *name;            /* rank 0's file has it now; "": it has none, which is so where the file system has
                                  * unnamed files */
    int n_threads;               /* that may copy */
};

/* Every rank calls it. Afterwards rank 0's file holds the blocks of all, in the order of the ranks, and one EOF block,
 * and places[team->size] tell there where those of each rank begin. A rank on rank 0's host writes its blocks itself,
 * by /proc/PID/fd; one on another host by name, if it finds rank 0's file under it; others send them. Rank 0's file is
 * whole when all ranks have returned. -1: failed, and the error is recorded in the latch; then the others must not be
 * waited for. */
int output_gather(const struct mpi_team *team, const struct output_part *part, uint64_t *places, struct latch *latch);

#endif
