/* SPDX-License-Identifier: MIT */
/* What becomes of losses: names of originals (do), kinds of duplicates (dt), numbers of duplicates (dc). Losses come
 * in the order of the later record of each, that in the table of singles before that in the table of pairs, from all
 * shards together.
 *
 * A record that loses hangs below the winner, so losses make trees. Sets of singles and of pairs that have a
 * record in common are in one tree, which has one original, its root. A record is settled when it would leave
 * upstream's queue. The chain pass over a tree is made when the first of its records leaves; records that join it
 * later get another one. Without the pass, a loss is settled at once, and only what originals count waits. Serial; no
 * I/O. */
#ifndef DUP_CHAINS_H
#define DUP_CHAINS_H

#include "markdup/dup_counts.h"
#include "markdup/dup_sets.h"
#include "markdup/dup_verdict.h"
#include "markdup/dup_warnings.h"

struct dup_others;
struct dup_store;

/* Returns 0 to go on; 1: to go on later; -1: failed. */
typedef int dup_settled_fn(void *context, const struct dup_verdict *verdict);

struct dup_chains_opt {
    bool names;                  /* do is wanted */
    bool counts;                 /* dc is wanted */
    bool pass;                   /* the chain pass is made, if do or dt is wanted */
    long distance;               /* -d; 0: dt is not wanted */
    const struct dup_coords_rule *coords_rule;   /* how names are read; NULL without distance */
    struct dup_counts *totals;   /* by read group: optical duplicates are added; NULL without distance */
    struct dup_others *others;   /* -S: gets the losers that are elsewhere; names must be kept. NULL: not wanted */
    struct dup_warnings *warnings;   /* gets names that cannot be read, as often as upstream reads them; NULL without
                                      * distance */
    const struct dup_store *store;   /* where losses go that outgrow memory; NULL: nowhere */
    dup_settled_fn *settled;
    void *context;
};

struct dup_chains;

/* Copies *opt; what its pointers lead to stays the caller's. NULL: out of memory. */
struct dup_chains *dup_chains_new(const struct dup_chains_opt *opt);
void dup_chains_free(struct dup_chains *chains);

/* Takes a loss. Call dup_chains_pass() first, as for the sets. */
enum dup_fault dup_chains_lose(struct dup_chains *chains, const struct dup_loss *loss);

/* Tells of the records that leave, in input order. As dup_sets_pass(). DUP_PAUSED: call it again before anything else,
 * with the same `before`. */
enum dup_fault dup_chains_pass(struct dup_chains *chains, int64_t before);

/* Every record with a smaller number that is to be settled has been. UINT64_MAX: no tree waits. */
uint64_t dup_chains_decided(struct dup_chains *chains);

/* Bytes of memory that it takes for what waits: some 60 for each loss in memory, and its name. */
size_t dup_chains_memory(const struct dup_chains *chains);

/* After DUP_NO_MATE_SCORE or DUP_BAD_NAME: the number of the record. */
uint64_t dup_chains_culprit(const struct dup_chains *chains);

#endif
