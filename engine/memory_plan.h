/* SPDX-License-Identifier: MIT */
/* How the memory is divided. Each module says in a function *_memory() what it takes; this module adds the numbers up,
 * and divides the rest. memory_plan_rings() comes first, before any file is opened: it decides how many blocks are in
 * use, and how much is read at once. When the headers are known, memory_plan_make() gives the remaining memory to the
 * arenas. A merge has no arenas: memory_plan_rings() gives the remaining memory to its inputs (engine/chunk_plan.h). */
#ifndef MEMORY_PLAN_H
#define MEMORY_PLAN_H

#include "base/memory_shares.h"

struct memory_rings memory_plan_rings(const struct memory_job *job);

/* All parts together stay below job->all, for any records, with two exceptions: records larger than an arena, and a
 * job->all that is less than the least that works (memory_plan_takes() returns the sum). For tests, the environment
 * variable SAMTOOLS_OMP_ARENA sets arena_size: a small arena makes small inputs spill. */
struct memory_plan memory_plan_make(const struct memory_rings *rings, const struct memory_use *use);

/* Bytes that all parts of the plan take together. */
uint64_t memory_plan_takes(const struct memory_plan *plan);

/* Returns the least memory, in bytes and a multiple of 1 MiB, with which a plan succeeds: a plan with job->all set
 * to it takes no more than that, and the same is true with 1 MiB more. It is larger than the present job->all. */
uint64_t memory_plan_enough(const struct memory_job *job, const struct memory_use *use);

#endif
