/* SPDX-License-Identifier: MIT */
/* Puts the blocks of all ranks into one file. */
#ifndef OUTPUT_GATHER_H
#define OUTPUT_GATHER_H

#include <stdint.h>
#include "mpi/mpi_team.h"

/* A rank's own blocks. */
struct output_part {
    int fd;                      /* a regular BGZF file, positioned at its end */
    const char *path;            /* for messages */
    const char *name;            /* the name that rank 0's file has now; "": it has none, which is so where the file
                                  * system has unnamed files */
    int n_threads;               /* threads that may copy */
};

/* Every rank calls it. Afterwards rank 0's file holds the blocks of all ranks, in the order of the ranks, and one EOF
 * block, and places[team->size] at rank 0 says where the blocks of each rank begin. A rank on rank 0's host writes its
 * blocks itself, through /proc/PID/fd. A rank on another host does so by name, if it finds rank 0's file under that
 * name. All other ranks send their blocks. Rank 0's file is complete when all ranks have returned. -1: failed, and the
 * error is recorded in the latch; then do not wait for the other ranks. */
int output_gather(const struct mpi_team *team, const struct output_part *part, uint64_t *places, struct latch *latch);

#endif
