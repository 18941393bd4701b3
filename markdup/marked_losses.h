/* SPDX-License-Identifier: MIT */
/* For options that need more of duplicates than their flag: the losses of a round, of all shards together and in order,
 * and their consequences (markdup/dup_chains.h). Serial. */
#ifndef MARKED_LOSSES_H
#define MARKED_LOSSES_H

#include "markdup/dup_chains.h"
#include "markdup/marked_queue.h"

struct marked_losses;

/* chains: without settled and context. The caller owns the read groups of chains->totals and all that it points to.
 * n_shards: number of writers of losses. step: bytes reported before a pause. NULL: out of memory. */
struct marked_losses *marked_losses_open(const struct dup_chains_opt *chains, uint32_t n_shards, size_t step);
void marked_losses_close(struct marked_losses *losses);

/* Keeps a loss of the round. Any thread may call it for a shard that it owns. -1: out of memory. */
int marked_losses_keep(struct marked_losses *losses, uint32_t shard, const struct dup_loss *loss);

/* Follows the losses of the round in waiting->list[entered] and after it; verdicts go to the slices. Call it in a task
 * that alone uses the queue and the losses. DUP_PAUSED: call it again when there is room; slices that are decided may
 * be taken before. */
enum dup_fault marked_losses_follow(struct marked_losses *losses, const struct marked_queue *waiting, size_t entered);

/* Reports all that is left, after the last record. DUP_PAUSED: as above. */
enum dup_fault marked_losses_end(struct marked_losses *losses, const struct marked_queue *waiting);

/* These do the same as the functions of dup_chains.h. */
uint64_t marked_losses_decided(struct marked_losses *losses);
size_t marked_losses_memory(const struct marked_losses *losses);
uint64_t marked_losses_culprit(const struct marked_losses *losses);

#endif
