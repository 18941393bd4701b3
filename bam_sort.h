/* SPDX-License-Identifier: MIT */
/* Two steps of the driver, for those who sort a part of an input (mpi/). Call them on the main thread of a team. */
#ifndef BAM_SORT_H
#define BAM_SORT_H

#include <stdint.h>

struct merge_runs;
struct sort_parts;

/* Afterwards all records are in sorted sublists: of both arenas, or of one arena if there are runs. -1: stop. */
int bam_sort_read(struct sort_parts *parts);

/* Opens the merge of all that was read: parts->merge. *runs: those that left memory. It may be closed behind the team
 * and opened once more. -1: stop. */
int bam_sort_begin_merge(struct sort_parts *parts, struct merge_runs *runs);

/* Tells on stderr, as upstream does, that runs are merged, if there are any. */
void bam_sort_tell_merge(uint64_t n_runs, uint64_t n_sublists);

#endif
