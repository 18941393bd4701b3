/* SPDX-License-Identifier: MIT */
/* How the memory is divided: the one place that counts it. memory_plan_rings() comes first, before any file is opened:
 * how many blocks are under way, and how much is read at once. When the headers are known, memory_plan_make() gives the
 * arenas what is left. A merge has no arenas: its inputs get what is left, in the first part. */
#ifndef MEMORY_PLAN_H
#define MEMORY_PLAN_H

#include "base/memory_shares.h"

struct memory_rings memory_plan_rings(const struct memory_job *job);

/* Everything together stays below job->all, whatever the records are (but for records larger than an arena, and where
 * the least that works is more: memory_plan_takes() tells). For tests, the environment's SAMTOOLS_OMP_ARENA is
 * arena_size: a small one makes small inputs spill. */
struct memory_plan memory_plan_make(const struct memory_rings *rings, const struct memory_use *use);

/* Bytes that all parts of the plan take together. */
uint64_t memory_plan_takes(const struct memory_plan *plan);

/* The next job->all, in bytes and whole MiB, with which a plan takes no more than that, nor with a MiB more. */
uint64_t memory_plan_enough(const struct memory_job *job, const struct memory_use *use);

/* Memory to parse SAM text: at most an eighth of all for so many inputs together, or, for each of them, the least that
 * works. */
struct chunk_memory memory_plan_chunks(uint64_t all, size_t n_inputs, int n_threads);

#endif
