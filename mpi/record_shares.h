/* SPDX-License-Identifier: MIT */
/* Determines which of a rank's records are for which rank if all are in memory: a part of each sorted sublist. */
#ifndef RECORD_SHARES_H
#define RECORD_SHARES_H

#include "base/task_ring.h"
#include "mpi/splitters.h"

struct record_shares {
    int size;                    /* ranks */
    size_t n_lists;
    struct merge_way *parts;     /* the part of sublist i for rank r: parts[r * n_lists + i] */
    uint64_t *bytes, *records;   /* for each rank */
    uint64_t largest;            /* bytes of the largest record */
    struct task_ring ring;       /* a slot for each sublist, whose bytes a task counts */
    uint64_t *counted;           /* for each sublist: bytes for each rank, then the size of its largest record */
    uint64_t *from;              /* what each rank has for this rank: bytes, then records */
    uint64_t bytes_come, records_come;   /* what the other ranks have for this rank, all together */
};

/* Finds the records that this rank has for each rank. `read` is what the splitters were made from. Call it in the
 * parallel region. -1: out of memory. In both cases free the shares, after the parallel region. */
int record_shares_make(struct record_shares *shares, const struct splitters *splitters,
                       const struct records_read *read);

/* Every rank calls it afterwards, to learn what the other ranks have for it. */
void record_shares_report(struct record_shares *shares, const struct mpi_team *team);
void record_shares_free(struct record_shares *shares);

/* Returns the parts of all sublists that are for one rank. */
static inline const struct merge_way *record_shares_of(const struct record_shares *shares, int rank)
{
    return shares->parts + (size_t)rank * shares->n_lists;
}

#endif
