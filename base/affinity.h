/* SPDX-License-Identifier: MIT */
/* On which CPUs threads may run.
 *
 * With OMP_PLACES, OMP_PROC_BIND, GOMP_CPU_AFFINITY or KMP_AFFINITY the OpenMP runtime binds each thread of its team to
 * a place; it binds the first thread as soon as it is loaded. Whatever that thread starts inherits its one place: threads
 * that are not OpenMP's (ours for pipes, htslib's), and a program that replaces this one by exec.
 *
 * So call affinity_widen() before you start such a thread and affinity_narrow() after it, and affinity_unbind() before
 * exec. All three do nothing where nothing is bound, and where the system has no masks (macOS). Errors are ignored:
 * threads then share CPUs, and results are the same. affinity_widen() and affinity_narrow() keep errno. */
#ifndef AFFINITY_H
#define AFFINITY_H

#include <stdbool.h>

enum { AFFINITY_CPUS = 8192 };   /* as many as Linux can be built for; with more, masks are left alone */

/* A mask as Linux has it: a bit for each CPU. */
struct affinity {
    bool known;
    unsigned long cpus[AFFINITY_CPUS / 8 / sizeof(unsigned long)];
};

/* Lets the calling thread, and so the threads that it starts, run on all of OpenMP's places. Sets *before to its mask
 * until now, or to not known if nothing was changed. */
void affinity_widen(struct affinity *before);

/* Lets the calling thread run where the process was allowed to when it was started, or, where that is not known (musl),
 * on all places. *before: as above. */
void affinity_unbind(struct affinity *before);

/* Gives the calling thread back the mask that it had. */
void affinity_narrow(const struct affinity *before);

/* The CPUs that threads may use: those of all places or, where nothing is bound, those that the process was started
 * on. */
struct affinity affinity_allowed(void);

static inline bool affinity_has(const struct affinity *mask, int cpu)
{
    enum { WORD = 8 * sizeof *mask->cpus };
    return mask->cpus[cpu / WORD] >> cpu % WORD & 1;
}

static inline void affinity_add(struct affinity *mask, int cpu)
{
    enum { WORD = 8 * sizeof *mask->cpus };
    mask->cpus[cpu / WORD] |= 1UL << cpu % WORD;
}

int affinity_count(const struct affinity *mask);

#endif
