/* SPDX-License-Identifier: MIT */
/* Where the whole order is cut, so that all ranks get equally many bytes. */
#ifndef SPLITTERS_H
#define SPLITTERS_H

#include "merge/merge_ring.h"
#include "mpi/mpi_team.h"

/* A place in the order of all records. Below it are those with smaller keys and, of those with this key, those of the
 * ranks before `source` and the first ones of `source`, as many as begin within `bytes`. */
struct splitter {
    uint64_t key, bytes;
    int64_t source;
};

/* Every rank calls it when its part is sorted in `arenas` and `runs`. keys_decide: records of one key may be parted.
 * slice_size: bytes of a slice of the runs, about. splitters[team->size - 1] are the same for all ranks afterwards. -1:
 * no memory at rank 0, and the error is in its latch. */
int splitters_make(struct splitter *splitters, const struct mpi_team *team, const struct bam_arena arenas[2],
                   const struct merge_runs *runs, size_t slice_size, bool keys_decide, struct latch *latch);

#endif
