/* SPDX-License-Identifier: MIT */
/* Marks the clusters of one tile that have a better cluster close to them: dx and dy are at most the distance. Each
 * cluster is given twice, in the same order, and only the best one of each cell is kept. A cell is a square so small
 * that any two clusters in it are close to each other, so all except the best one are marked. A cluster can only be
 * close to clusters of its own cell and of the eight cells around it:
 *
 *   add       a cluster that is better than the best one of its cell takes its place
 *   compare   a cluster that is not the best one of its cell is marked; best ones around it, close and worse, are noted
 *   end       the clusters that were noted are marked
 *
 * So n clusters take n steps, and some 110 bytes for each cell that is not empty. If that is too much memory, all
 * clusters are given again in several rounds, each for some of the cells. Serial. */
#ifndef DUP_CELLS_H
#define DUP_CELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "base/byte_buffer.h"
#include "markdup/dup_name.h"
#include "markdup/small_pool.h"

/* A duplicate on the flow cell. */
struct dup_cluster {
    const char *name;
    struct dup_coords coords;
    int64_t score;               /* for the end of a pair, including its mate's */
    bool pair_end, qc_fail;
    bool optical;                /* it is known to be optical */
    bool elsewhere;              /* the caller's */
};

/* Receives an optical duplicate, perhaps more than once. member: the caller's number for it. The name is valid during
 * the call. */
typedef void dup_mark_fn(void *context, uint64_t member, const struct dup_cluster *cluster);

/* The receiver of optical duplicates. */
struct dup_marker {
    long distance;  /* maximum distance of two close clusters: at least 1, and the same in all calls for a tile */
    dup_mark_fn *mark;
    void *context;
};

/* The rule that decides which of two clusters is better, as in samtools. */
struct dup_worth {
    int64_t score;
    const char *name;
    uint64_t begin;  /* 8 bytes of the name, after the common beginning of all names of the group; or 0 in all */
    uint32_t cluster;                /* its place, if names may be equal; or 0 in all */
    uint32_t fault;              /* 2: not a pair end; 1: failed quality control */
};

/* Sets all fields except begin and cluster. */
static inline struct dup_worth dup_worth_of(const struct dup_cluster *cluster)
{
    return (struct dup_worth){.score = cluster->score, .name = cluster->name,
                              .fault = (cluster->pair_end ? 0 : 2) + (uint32_t)cluster->qc_fail};
}

/* Below 0: a is better; 0: they are equal. */
static inline int dup_worth_compare(const struct dup_worth *a, const struct dup_worth *b)
{
    if (a->fault != b->fault)
        return a->fault < b->fault ? -1 : 1;
    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    int order = strcmp(a->name, b->name);
    return order ? order : (a->cluster > b->cluster) - (a->cluster < b->cluster);
}

/* A zero-initialised struct is empty, and has one round with all cells and no limit. */
struct dup_cells {
    struct byte_buffer list;     /* struct cell */
    struct small_pool names;     /* names of best clusters */
    uint32_t *slots;             /* hash table: number of the cell + 1; 0: free */
    size_t n_slots;              /* 0, or a power of two */
    uint32_t round, more_rounds; /* set by the caller: number of the round; number of rounds, a power of two, - 1 */
    size_t most;                 /* set by the caller: bytes that the cells of a round may use; 0: no limit */
};

/* Removes the cells and frees all memory. */
void dup_cells_free(struct dup_cells *cells);

/* There are no cells after dup_cells_end(). 1: the round has too many cells; -1: out of memory. */
int dup_cells_add(struct dup_cells *cells, const struct dup_marker *to, const struct dup_cluster *cluster,
                  uint64_t member);
void dup_cells_compare(struct dup_cells *cells, const struct dup_marker *to, const struct dup_cluster *cluster,
                       uint64_t member);
void dup_cells_end(struct dup_cells *cells, const struct dup_marker *to);

#endif
