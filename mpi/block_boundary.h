/* SPDX-License-Identifier: MIT */
/* Blocks that lie across two ranks. A block belongs to the rank in which it begins; the records of it that are
 * another rank's go there. write/output_block.c has the rule: a record that does not fit into the open block begins
 * another, and one that fits into none begins a block, and its last segment's block stays open. */
#ifndef BLOCK_BOUNDARY_H
#define BLOCK_BOUNDARY_H

#include "codec/bgzf_block.h"
#include "mpi/mpi_team.h"
#include "write/record_list.h"

/* For each record with which this rank's first block may begin: the blocks from there on. Those that come to begin with
 * the same record are the same from it on, so one chain goes over into the other. */
struct block_chains {
    uint16_t *into;              /* the chain that a chain has gone over into; itself */
    uint64_t *begin;             /* of a chain: where its last block begins, in bytes */
    uint16_t *open;              /* chains by the begin of their last block: a ring */
    size_t first, n;
    uint64_t bytes;              /* of all records so far; a long one has those of its last block only */
};

struct block_boundary {
    struct record_list kept;     /* this rank's records, in order, if it keeps them; else empty, and ... */
    uint32_t *sizes;             /* ... their sizes; else NULL */
    size_t n, room;
    size_t n_lead;               /* how many of them, the first ones, are in a block of an earlier rank */
    uint8_t *lead;               /* a block's worth of the first records; then n_lead, and what goes with them */
    size_t lead_size;
    uint8_t *tail;               /* records of later ranks that are in this rank's last block */
    size_t tail_size;
    struct block_chains chains;
};

/* For n_records. keeps: they stay where they are, and all of them are listed in `kept`: 18 bytes for each, not 4.
 * -1: out of memory. Either way, close it. */
int block_boundary_open(struct block_boundary *boundary, size_t n_records, bool keeps);
void block_boundary_close(struct block_boundary *boundary);

/* Tells it of this rank's records, all of them, in order. */
void block_boundary_add(struct block_boundary *boundary, const struct record_list *list);

/* Every rank calls it then. Afterwards n_lead and tail are known. */
void block_boundary_settle(struct block_boundary *boundary, const struct mpi_team *team);

/* A list of the tail's records, with room for them. Returns how many there are. */
size_t block_boundary_tail(const struct block_boundary *boundary, struct record_ref *records);

/* Records in a tail at most. */
enum { BLOCK_BOUNDARY_RECORDS = BGZF_FILL / BAM_MIN_RECORD + 1 };

#endif
