/* SPDX-License-Identifier: MIT */
/* The sorted sublists of a rank that keeps its own records where sort A has put them, in the order of the input: sort B
 * has those of the ranks behind it first, then those of the ranks before it (exchange.h).
 *
 *   sort A    | own |             own, of what it read: the part that it also writes
 *   sort B    | behind | before |
 *   merged    before, own, behind */
#ifndef RANK_LISTS_H
#define RANK_LISTS_H

#include "sort/merge_ring.h"
#include "mpi/record_shares.h"
#include "sort/arenas.h"

struct rank_lists {
    struct merge_way *all;       /* A's sublists; the older arena first */
    size_t n, n_older;           /* of them in the older arena */
    struct bam_sublist *own;     /* the rank's part of each */
    size_t n_behind[2];          /* of B's arenas: sublists of ranks behind this one */
    struct bam_arena views[MERGE_ARENAS_MAX];   /* parts of the arenas, for the merge */
};

/* Lists the sublists of sort A. -1: out of memory; free it anyway. */
int rank_lists_make(struct rank_lists *lists, struct arenas *a);
void rank_lists_free(struct rank_lists *lists);

/* B has what comes from ranks behind this one, and nothing else yet. */
void rank_lists_note_behind(struct rank_lists *lists, const struct arenas *b);

/* Sets the arenas of a merge of what this rank writes. shares: of what it read. */
void rank_lists_merge(struct rank_lists *lists, const struct record_shares *shares, int rank, struct arenas *a,
                      struct arenas *b, struct merge_ring_options *how);

#endif
