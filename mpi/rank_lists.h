/* SPDX-License-Identifier: MIT */
/* The sorted sublists of a rank that keeps its own records where sort A has put them, in the order of the input. Sort B
 * has the records of the ranks after this one first, then those of the ranks before it (exchange.h).
 *
 *   sort A    | own |             own: the part of its input that the rank also writes
 *   sort B    | behind | before |
 *   merged    before, own, behind */
#ifndef RANK_LISTS_H
#define RANK_LISTS_H

#include "sort/merge_ring.h"
#include "mpi/record_shares.h"
#include "sort/arenas.h"

struct rank_lists {
    struct merge_way *all;       /* A's sublists; those of the older arena come first */
    size_t n, n_older;           /* the number of sublists, and of those in the older arena */
    struct bam_sublist *own;     /* the part of each sublist that the rank also writes */
    size_t n_behind[2];          /* for each of B's arenas: the number of sublists from ranks after this one */
    struct bam_arena views[RANGE_ARENAS_MAX];   /* parts of the arenas, for the merge */
};

/* Lists the sublists of sort A. -1: out of memory; free it anyway. */
int rank_lists_make(struct rank_lists *lists, struct arenas *a);
void rank_lists_free(struct rank_lists *lists);

/* Call it when B has the records from the ranks after this one, and no others yet. */
void rank_lists_note_behind(struct rank_lists *lists, const struct arenas *b);

/* Sets the arenas for the merge of the records that this rank writes. shares: of the records that it read. */
void rank_lists_merge(struct rank_lists *lists, const struct record_shares *shares, int rank, struct arenas *a,
                      struct arenas *b, struct merge_ring_options *how);

#endif
