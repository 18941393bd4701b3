/* SPDX-License-Identifier: MIT */
/* Where the whole order is cut, so that all ranks get equally many bytes. */
#ifndef SPLITTERS_H
#define SPLITTERS_H

#include "merge/merge_ring.h"
#include "mpi/mpi_team.h"

/* A place in the order of all records. Below it are those that come before its key and record and, of those that tie
 * with it, those of the ranks before `source` and the first ones of `source`, as many as begin within `bytes`. */
struct splitter {
    uint64_t key, bytes;
    const uint8_t *record;       /* without SEQ and QUAL; NULL: only the key is known, and where records are compared
                                  * those that have it come behind */
    int64_t source;
};

/* Of all ranks but the last: each ends at its splitter. */
struct splitters {
    struct splitter *each;
    size_t n;
    uint8_t *records;
};

/* What a rank has read. */
struct splitters_options {
    const struct mpi_team *team;
    const struct merge_source *lists;   /* the sorted sublists in memory, in the order of the input */
    size_t n_lists;
    uint64_t bytes;              /* of the records in them */
    int n_threads;
    const struct sort_rule *rule;       /* compares records of equal keys; NULL: they tie */
    const struct merge_runs *runs;      /* what left memory */
    size_t slice_size;           /* bytes of a slice of the runs, about */
    struct latch *latch;
};

/* Every rank calls it. Then all ranks have the same splitters. -1: some rank lacks memory, and the error is in its
 * latch. Either way, free them. */
int splitters_make(struct splitters *splitters, const struct splitters_options *options);
void splitters_free(struct splitters *splitters);

/* Where a record stands: < 0 before what ties with the splitter, 0 it ties, > 0 behind. rule: as above. */
int splitter_compare(const struct splitter *splitter, const struct sort_rule *rule, uint64_t key,
                     const uint8_t *record);

/* The first record of a sorted list that does not come before what ties with the splitter, or (ties: before and with)
 * it; list.end if there is none. */
const struct bam_key *splitter_find(const struct splitter *splitter, const struct sort_rule *rule,
                                    struct merge_source list, bool ties);

#endif
