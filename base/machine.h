/* SPDX-License-Identifier: MIT */
/* The resources that the machine, or the container, gives the process. */
#ifndef MACHINE_H
#define MACHINE_H

#include <stdint.h>
#include "base/topology.h"

/* Bytes of memory we may hope for: the physical memory or the cgroup's limit, whichever is less. */
uint64_t machine_memory(void);

/* Bytes of address space that are left under the limit (ulimit -v); UINT64_MAX without one. */
uint64_t machine_address_space(void);

/* Where they have a limit: threads share heaps from now on. glibc would reserve 64 MiB of addresses for each thread
 * that allocates, until none are left for what is larger. */
void machine_share_heaps(void);

/* From now on memory of 128 KiB and more goes back to the system when it is freed; glibc would keep up to 64 MiB for
 * each thread. CRAM gets slower by a tenth or more by that, so this is for jobs with little memory. */
void machine_keep_heaps_small(void);

/* Returns the free memory of the heaps to the system, if the C library can do that. */
void machine_give_back_heaps(void);

/* How many more threads, `wanted` at most, can be had at once now: RLIMIT_NPROC, a cgroup's
 * pids.max and the address space limit them, of which 32 MiB are left to their work. Tried, since nothing tells. */
int machine_threads(int wanted);

/* Threads for a team of OpenMP's, 1 to `wanted`, so that `later` more can still be started. Of fewer than wanted, *why
 * tells the cause: a constant string. OpenMP runtimes end the process when a thread cannot be made, and give fewer than
 * they are asked for, without a word, where OMP_THREAD_LIMIT is less. */
int machine_team(int wanted, int later, const char **why);

/* Lets the process have `wanted` files open at once, as far as the hard limit allows (ulimit -Hn). Returns how many it
 * may have open. */
uint64_t machine_open_files(uint64_t wanted);

/* CPUs that we may run on: those of the affinity mask, or as many as the cgroup's
 * quota is worth, whichever is less. Where OpenMP binds threads, those of its places instead of the mask's. */
int machine_cpus(void);

/* How the CPUs of that mask or of those places lie in the machine. */
struct topology machine_topology(void);

/* The resources that the process has used so far. */
struct machine_usage {
    double user, system;         /* seconds of CPU time */
    uint64_t peak_rss;           /* bytes */
    uint64_t major_faults;       /* pages that had to be read from a disk */
};

struct machine_usage machine_usage(void);

/* Nanoseconds that the threads which now are there were ready to run and had no CPU; UINT64_MAX: not known. root: what
 * to put before /proc; "" except in tests. */
uint64_t machine_run_queue(const char *root);

/* Bytes of our memory that now are huge pages; UINT64_MAX: not known. */
uint64_t machine_huge_pages(void);

/* Bytes that the program and its libraries took of memory when this was called first, which is before anything large is
 * allocated; 0: not known. By the main thread only. */
uint64_t machine_program_memory(void);

#endif
