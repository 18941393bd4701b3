/* SPDX-License-Identifier: MIT */
/* Follows losses: names of originals (do), kinds of duplicates (dt), numbers of duplicates (dc). Losses come from all
 * shards together, in the order of the later record of each; a loss in the table of singles comes before a loss in the
 * table of pairs.
 *
 * A record that loses becomes a child of the winner, so losses form trees. Sets of singles and of pairs that share a
 * record are in one tree, which has one original, its root. A record is reported when it would leave samtools' queue.
 * The chain pass over a tree is made when the first of its records leaves; records that join it later get another pass.
 * Without the pass, a loss is reported at once, and only the counts of originals wait. Serial; no I/O. */
#ifndef DUP_CHAINS_H
#define DUP_CHAINS_H

#include "markdup/dup_counts.h"
#include "markdup/dup_sets.h"
#include "markdup/dup_verdict.h"
#include "markdup/dup_warnings.h"

struct dup_others;
struct dup_store;

/* Returns 0 to continue; 1 to pause; -1: failed. */
typedef int dup_settled_fn(void *context, const struct dup_verdict *verdict);

struct dup_chains_opt {
    bool names;                  /* do is wanted */
    bool counts;                 /* dc is wanted */
    bool pass;                   /* the chain pass is made if do or dt is requested */
    long distance;               /* -d; 0: no dt */
    const struct dup_coords_rule *coords_rule;   /* how names are read; NULL without distance */
    struct dup_counts *totals;   /* by read group: optical duplicates are added; NULL if distance is 0 */
    struct dup_others *others;   /* -S: gets the losers that are elsewhere; names must be kept. NULL: not requested */
    struct dup_warnings *warnings;   /* gets names that cannot be read, as often as samtools reads them; NULL if
                                      * distance is 0 */
    const struct dup_store *store;   /* holds losses that do not fit into memory; NULL: none */
    dup_settled_fn *settled;
    void *context;
};

struct dup_chains;

/* Copies *opt, but not the objects that it points to, which belong to the caller. NULL: out of memory. */
struct dup_chains *dup_chains_new(const struct dup_chains_opt *opt);
void dup_chains_free(struct dup_chains *chains);

/* Takes a loss. Call dup_chains_pass() first, as for the sets. */
enum dup_fault dup_chains_lose(struct dup_chains *chains, const struct dup_loss *loss);

/* Reports the records that leave, in input order, like dup_sets_pass(). After DUP_PAUSED, call it again before any
 * other function, with the same `before`. */
enum dup_fault dup_chains_pass(struct dup_chains *chains, int64_t before);

/* Returns the number below which all records have been settled. UINT64_MAX: no tree is waiting. */
uint64_t dup_chains_decided(struct dup_chains *chains);

/* Returns the bytes of memory that losses use until they are settled: about 60 bytes and the name for each one in
 * memory. */
size_t dup_chains_memory(const struct dup_chains *chains);

/* After DUP_NO_MATE_SCORE or DUP_BAD_NAME: the number of the record. */
uint64_t dup_chains_culprit(const struct dup_chains *chains);

#endif
