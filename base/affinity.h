/* SPDX-License-Identifier: MIT */
/* The CPUs on which threads may run. If OMP_PLACES or a similar variable is set, the OpenMP runtime binds the first
 * thread to one place as soon as it is loaded, and each thread or program that this thread starts inherits the place
 * (doc/design.md). So call affinity_widen() before you start a thread that is not OpenMP's and affinity_narrow() after
 * it, and affinity_unbind() before exec. All three do nothing if no thread is bound, or if the system has no masks
 * (macOS). Errors are ignored: threads then share CPUs. affinity_widen() and affinity_narrow() keep errno. */
#ifndef AFFINITY_H
#define AFFINITY_H

#include <stdbool.h>

enum { AFFINITY_CPUS = 8192 };   /* the most CPUs that Linux supports; if there are more, masks are left alone */

/* A mask as in Linux: one bit for each CPU. */
struct affinity {
    bool known;
    unsigned long cpus[AFFINITY_CPUS / 8 / sizeof(unsigned long)];
};

/* Lets the calling thread run on all of OpenMP's places. *before: its old mask; unknown: nothing was changed. */
void affinity_widen(struct affinity *before);

/* Lets the calling thread run on all CPUs that the process could use when it was started. If they are not known, as
 * with musl, does the same as affinity_widen(). *before: as above. */
void affinity_unbind(struct affinity *before);

/* Restores the old mask of the calling thread. */
void affinity_narrow(const struct affinity *before);

/* The CPUs that threads may use: those of all places or, if no thread is bound, those on which the process was
 * started. */
struct affinity affinity_allowed(void);

/* The CPUs on which the calling thread may run now. Asks the system only, so it may be called before OpenMP is
 * loaded. */
struct affinity affinity_now(void);

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
