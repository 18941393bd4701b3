/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <omp.h>
#include <stdlib.h>
#include "base/affinity.h"

/* Written once, before main(). */
static struct affinity at_start;

#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>

struct affinity affinity_now(void)
{
    struct affinity mask = {0};
    mask.known = syscall(SYS_sched_getaffinity, 0, sizeof mask.cpus, mask.cpus) > 0;
    return mask;
}

static void set_mask(const struct affinity *mask)
{
    if (mask->known)
        syscall(SYS_sched_setaffinity, 0, sizeof mask->cpus, mask->cpus);
}

/* libgomp changes the mask as soon as it is loaded and does not keep the old one. glibc calls the functions in this
 * section before the constructors of all libraries. musl does not; then the mask stays unknown. */
static void note_start(void)
{
    at_start = affinity_now();
}
__attribute__((section(".preinit_array"), used)) static void (*const note_start_early)(void) = note_start;
#else
struct affinity affinity_now(void) { return (struct affinity){.known = false}; }
static void set_mask(const struct affinity *mask) { (void)mask; }
#endif

static void add_place(struct affinity *mask, int place)
{
    int n = omp_get_place_num_procs(place);
    int *ids = n > 0 ? malloc((size_t)n * sizeof *ids) : NULL;
    if (ids)
        omp_get_place_proc_ids(place, ids);
    for (int i = 0; ids && i < n; i++)
        if (ids[i] >= 0 && ids[i] < AFFINITY_CPUS)
            affinity_add(mask, ids[i]);
    free(ids);
}

/* Returns the CPUs of all OpenMP places. The mask is unknown if threads are not bound to places. */
static struct affinity all_places(void)
{
    struct affinity mask = {0};
    int n = omp_get_proc_bind() == omp_proc_bind_false ? 0 : omp_get_num_places();
    for (int i = 0; i < n; i++)
        add_place(&mask, i);
    for (size_t i = 0; i < sizeof mask.cpus / sizeof *mask.cpus; i++)
        mask.known |= mask.cpus[i] != 0;
    return mask;
}

static void change_mask(const struct affinity *to, struct affinity *before)
{
    *before = (struct affinity){0};
    if (to->known)
        *before = affinity_now();
    if (before->known)
        set_mask(to);
}

void affinity_widen(struct affinity *before)
{
    int kept = errno;
    struct affinity places = all_places();
    change_mask(&places, before);
    errno = kept;
}

void affinity_unbind(struct affinity *before)
{
    if (at_start.known)
        change_mask(&at_start, before);
    else
        affinity_widen(before);
}

void affinity_narrow(const struct affinity *before)
{
    int kept = errno;
    set_mask(before);
    errno = kept;
}

struct affinity affinity_allowed(void)
{
    struct affinity mask = all_places();
    if (!mask.known)
        mask = at_start;
    return mask.known ? mask : affinity_now();
}

int affinity_count(const struct affinity *mask)
{
    int n = 0;
    for (int cpu = 0; cpu < AFFINITY_CPUS; cpu++)
        n += affinity_has(mask, cpu);
    return n;
}
