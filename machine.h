/* SPDX-License-Identifier: MIT */
/* What the machine, or the container we are in, gives us. */
#ifndef MACHINE_H
#define MACHINE_H

#include <stdint.h>

/* Bytes of memory we may hope for: the physical memory or the cgroup's limit,
 * whichever is less. */
uint64_t machine_memory(void);

/* Bytes of address space that are left under the limit (ulimit -v); UINT64_MAX
 * without one. */
uint64_t machine_address_space(void);

/* How many more threads, `wanted` at most, can be had at once now: RLIMIT_NPROC, a cgroup's
 * pids.max and the address space limit them. Tried, since nothing tells. */
int machine_threads(int wanted);

#endif
