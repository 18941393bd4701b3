/* SPDX-License-Identifier: MIT */
/* Makes one index of the blocks that all ranks wrote. */
#ifndef INDEX_GATHER_H
#define INDEX_GATHER_H

#include <stdint.h>
#include "mpi/mpi_team.h"

struct bam_index;

/* Every rank calls it. index: at rank 0, the index with its own blocks; at the other ranks, the log of theirs. places:
 * as output_gather() set them. Rank 0 enters all blocks and saves the index. -1: failed, and the error is recorded in
 * the latch; then do not wait for the other ranks. */
int index_gather(const struct mpi_team *team, struct bam_index *index, const uint64_t *places, struct latch *latch);

#endif
