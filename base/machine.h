/* SPDX-License-Identifier: MIT */
/* The resources that the machine, or the container, gives the process. */
#ifndef MACHINE_H
#define MACHINE_H

#include <stddef.h>
#include <stdint.h>
#include "base/topology.h"

/* Bytes of memory that may be available: the physical memory or the cgroup's limit, whichever is less. */
uint64_t machine_memory(void);

/* Bytes of address space left under the limit (ulimit -v); UINT64_MAX without a limit. */
uint64_t machine_address_space(void);

/* Makes threads share heaps from now on if address space is limited. Otherwise glibc would reserve 64 MiB of addresses
 * for each thread that allocates, until too few are left for large allocations. */
void machine_share_heaps(void);

/* From now on memory of 128 KiB and more returns to the system when it is freed; by default glibc keeps up to 64 MiB
 * for each thread. It makes CRAM slower by a tenth or more, so it is for jobs with little memory. */
void machine_keep_heaps_small(void);

/* Returns the free memory of the heaps to the system, if the C library can do that. */
void machine_give_back_heaps(void);

/* The number of threads, at most `wanted`, that can be started now. RLIMIT_NPROC, a cgroup's pids.max and the address
 * space limit it; 32 MiB of addresses stay free for the threads' work. The function starts threads to find out, because
 * no system call reports the number. */
int machine_threads(int wanted);

/* The number of threads for an OpenMP team, 1 to `wanted`, so that `later` more can still be started. If it is less
 * than wanted, *why is the cause, a constant string. OpenMP runtimes end the process when a thread cannot be created,
 * and give fewer threads without a message if OMP_THREAD_LIMIT is less. */
int machine_team(int wanted, int later, const char **why);

/* Lets the process have `wanted` files open at once, up to the hard limit (ulimit -Hn). Returns the number that it may
 * have open. */
uint64_t machine_open_files(uint64_t wanted);

/* Number of CPUs that we may use: those of the affinity mask or the CPUs that the cgroup's quota amounts to, whichever
 * is less. If OpenMP binds threads, the CPUs of its places replace the mask's. */
int machine_cpus(void);

/* The layout of the CPUs of that mask or those places in the machine. */
struct topology machine_topology(void);

/* The resources that the process has used so far. */
struct machine_usage {
    double user, system;         /* seconds of CPU time */
    uint64_t peak_rss;           /* bytes */
    uint64_t major_faults;       /* pages that were read from a disk */
};

struct machine_usage machine_usage(void);

/* Nanoseconds for which the present threads were ready to run and had no CPU; UINT64_MAX: unknown. root: prefix of
 * /proc; "" except in tests. */
uint64_t machine_run_queue(const char *root);

/* Bytes of our memory that are in huge pages now; UINT64_MAX: unknown. */
uint64_t machine_huge_pages(void);

/* Bytes of the code of the program and its libraries, and of the memory that they have written at the first call, which
 * is before anything large is allocated; 0: unknown. Only the main thread calls it. */
uint64_t machine_program_memory(void);

/* Returns the bytes that the program needs while it works. at_start: what machine_program_memory() returned. The result
 * is at most `most`, but not less than the smallest program needs. */
size_t machine_program_grown(size_t at_start, size_t most);

/* Returns the bytes that a thread takes besides the buffers that are made for it. */
size_t machine_thread_memory(void);

#endif
