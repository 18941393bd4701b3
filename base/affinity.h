/* SPDX-License-Identifier: MIT */
/* On which CPUs threads may run.
 *
 * With OMP_PLACES, OMP_PROC_BIND, GOMP_CPU_AFFINITY or KMP_AFFINITY the OpenMP runtime binds the threads of its team,
 * each to its place; the first thread already when the runtime is loaded. That is its business alone. But what the
 * first thread starts inherits its one place, if nothing is done: the threads that are not OpenMP's (ours for pipes,
 * htslib's), and a program that takes this one's place by exec.
 *
 * So whoever starts such a thread calls affinity_widen() before it and affinity_narrow() after it, and whoever calls exec
 * calls affinity_unbind() first. All three do nothing where nothing is bound, and where the system has no masks
 * (macOS). What fails is passed over: threads then share CPUs, and results are the same. errno of what stands
 * between them is kept. */
#ifndef AFFINITY_H
#define AFFINITY_H

#include <stdbool.h>

enum { AFFINITY_CPUS = 8192 };   /* as many as Linux can be built for; with more, masks are left alone */

/* A mask as Linux has it: a bit for each CPU. */
struct affinity {
    bool known;
    unsigned long cpus[AFFINITY_CPUS / 8 / sizeof(unsigned long)];
};

/* Lets the calling thread, and so the threads that it starts, run on all of OpenMP's places. *before: its mask
 * until now; not known if nothing was changed. */
void affinity_widen(struct affinity *before);

/* Lets the calling thread run where the process was allowed to when it was started. Where that is not known (musl), on all
 * places. *before: as above. */
void affinity_unbind(struct affinity *before);

/* Gives the calling thread back the mask that it had. */
void affinity_narrow(const struct affinity *before);

/* CPUs in all places; 0: nothing is bound. */
int affinity_cpus(void);

#endif
