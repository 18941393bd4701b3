/* SPDX-License-Identifier: MIT */
/* One file of the ranks' blocks. */
#ifndef OUTPUT_GATHER_H
#define OUTPUT_GATHER_H

#include <stdint.h>
#include "mpi/mpi_team.h"

/* Every rank calls it with its own BGZF file, which stands at its end and is regular. Afterwards rank 0's holds the
 * blocks of all, in the order of the ranks, and one EOF block, and places[team->size] tell there where those of each
 * rank begin. A rank on rank 0's host writes its blocks itself, by /proc/PID/fd; one on another host by name, if it
 * finds rank 0's file under it; others send them. Rank 0's file is whole when all ranks have returned. path: for
 * messages. name: rank 0's file has it now; "": it has none, which is so where the file system has unnamed files. -1:
 * failed, and the error is recorded in the latch; then the others must not be waited for. */
int output_gather(const struct mpi_team *team, int fd, const char *path, const char *name, uint64_t *places,
                  struct latch *latch);

#endif
