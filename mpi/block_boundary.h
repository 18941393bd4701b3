/* SPDX-License-Identifier: MIT */
/* Blocks that lie across two ranks. A block belongs to the rank in which it begins, and the other rank sends its
 * records of the block there. write/output_block.c has the rule: a record that does not fit into the open block begins
 * another block. A record that is longer than a block begins one, too, and the block of its last segment stays open. */
#ifndef BLOCK_BOUNDARY_H
#define BLOCK_BOUNDARY_H

#include "codec/bgzf_block.h"
#include "mpi/mpi_team.h"
#include "write/record_list.h"

/* Chains of blocks: one chain for each record with which this rank's first block may begin. If a record begins a block
 * in two chains, the chains are the same from there on, so one chain merges into the other. */
struct block_chains {
    uint16_t *into;              /* the chain that a chain has merged into; the chain itself if it has not merged */
    uint64_t *begin;             /* where the last block of a chain begins, in bytes */
    uint16_t *open;              /* chains, in the order in which their last blocks begin: a ring */
    size_t first, n;
    uint64_t bytes;              /* bytes of all records so far; a long record counts only with the bytes of its last
                                  * block */
};

struct block_boundary {
    struct record_list kept;     /* this rank's records, in order, if it keeps them; else empty, and ... */
    uint32_t *sizes;             /* ... their sizes; else NULL */
    size_t n, room;
    size_t n_lead;               /* the first n_lead records are in a block of an earlier rank */
    uint8_t *lead;               /* at most one block of the first records; later the n_lead first ones, and the tail if
                                  * it is in the same block */
    size_t lead_size;
    uint8_t *tail;               /* records of later ranks that are in this rank's last block */
    size_t tail_size;
    struct block_chains chains;
};

/* Opens it for n_records. keeps: the records stay where they are, and `kept` lists all of them, which takes 18 bytes
 * for each record instead of 4. -1: out of memory. Close it in both cases. */
int block_boundary_open(struct block_boundary *boundary, size_t n_records, bool keeps);
void block_boundary_close(struct block_boundary *boundary);

/* Adds records of this rank. Call it for all of them, in order. */
void block_boundary_add(struct block_boundary *boundary, const struct record_list *list);

/* Every rank calls it after it has added all of its records. Afterwards n_lead and tail are known. */
void block_boundary_settle(struct block_boundary *boundary, const struct mpi_team *team);

/* Lists the tail's records in `records`, which has room for them. Returns their number. */
size_t block_boundary_tail(const struct block_boundary *boundary, struct record_ref *records);

/* The greatest number of records in a tail. */
enum { BLOCK_BOUNDARY_RECORDS = BGZF_FILL / BAM_MIN_RECORD + 1 };

#endif
