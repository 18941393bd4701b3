/* SPDX-License-Identifier: MIT */
/* On which CPUs threads may run. With OMP_PLACES and its like the OpenMP runtime binds the first thread to one place as
 * soon as it is loaded, and whatever that thread starts inherits the place (doc/design.md). So call affinity_widen()
 * before you start a thread that is not OpenMP's and affinity_narrow() after it, and affinity_unbind() before exec. All
 * three do nothing where nothing is bound, and where the system has no masks (macOS). Errors are ignored: threads then
 * share CPUs. affinity_widen() and affinity_narrow() keep errno. */
#ifndef AFFINITY_H
#define AFFINITY_H

#include <stdbool.h>

enum { AFFINITY_CPUS = 8192 };   /* as many as Linux can be built for; with more, masks are left alone */

/* A mask as Linux has it: a bit for each CPU. */
struct affinity {
    bool known;
    unsigned long cpus[AFFINITY_CPUS / 8 / sizeof(unsigned long)];
};

/* Lets the calling thread run on all of OpenMP's places. *before: its mask so far; not known: nothing was changed. */
void affinity_widen(struct affinity *before);

/* The same, but where the process was allowed to run when it was started, if that is known (not with musl). */
void affinity_unbind(struct affinity *before);

/* Gives the calling thread back the mask that it had. */
void affinity_narrow(const struct affinity *before);

/* The CPUs that threads may use: those of all places or, where nothing is bound, those that the process was started
 * on. */
struct affinity affinity_allowed(void);

/* Those on which the calling thread may run now. Asks the system only, so it may be called before OpenMP is loaded. */
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
