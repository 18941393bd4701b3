/* SPDX-License-Identifier: MIT */
/* One index of what the ranks wrote. */
#ifndef INDEX_GATHER_H
#define INDEX_GATHER_H

#include <stdint.h>
#include "mpi/mpi_team.h"

struct bam_index;

/* Every rank calls it. index: at rank 0, with its own blocks; at the others, the log of theirs. places: as of
 * output_gather(). Rank 0 enters all and saves the index. -1: failed, and the error is recorded in the latch; then the
 * others must not be waited for. */
int index_gather(const struct mpi_team *team, struct bam_index *index, const uint64_t *places, struct latch *latch);

#endif
