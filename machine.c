/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "machine.h"

/* The number in a one-line file; UINT64_MAX if there is none ("max"). */
static uint64_t limit_in(const char *path)
{
    uint64_t value = UINT64_MAX;
    FILE *file = fopen(path, "r");
    if (!file)
        return value;
    if (fscanf(file, "%" SCNu64, &value) != 1)
        value = UINT64_MAX;
    fclose(file);
    return value;
}

/* The CPUs that a file cpu.max ("quota period" or "max period") allows. */
static uint64_t cpus_in(const char *path)
{
    uint64_t quota, period, cpus = UINT64_MAX;
    FILE *file = fopen(path, "r");
    if (!file)
        return cpus;
    if (fscanf(file, "%" SCNu64 " %" SCNu64, &quota, &period) == 2 && period > 0)
        cpus = quota < period ? 1 : quota / period;
    fclose(file);
    return cpus;
}

typedef uint64_t limit_fn(const char *path);

/* The smallest limit on the way from our cgroup (v2) up to the root. */
static uint64_t cgroup2_limit(const char *group, const char *name, limit_fn *limit_of)
{
    uint64_t least = UINT64_MAX;
    char *path = strdup(group);
    for (char *slash; path; *slash = 0) {
        char *file = NULL;
        if (asprintf(&file, "/sys/fs/cgroup%s/%s", path, name) < 0)
            break;
        uint64_t limit = limit_of(file);
        free(file);
        least = limit < least ? limit : least;
        if (!(slash = strrchr(path, '/')))
            break;
    }
    free(path);
    return least;
}

static uint64_t cgroup_limit(const char *name, limit_fn *limit_of)
{
    char line[4096];
    uint64_t least = UINT64_MAX;
    FILE *file = fopen("/proc/self/cgroup", "r");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "0::", 3) == 0) {
            uint64_t limit = cgroup2_limit(strcmp(line + 3, "/") == 0 ? "" : line + 3, name, limit_of);
            least = limit < least ? limit : least;
        }
    }
    if (file)
        fclose(file);
    return least;
}

uint64_t machine_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    uint64_t physical = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : UINT64_MAX;
    uint64_t limit = cgroup_limit("memory.max", limit_in);
    uint64_t v1 = limit_in("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    limit = v1 < limit ? v1 : limit;
    return limit < physical ? limit : physical;
}

uint64_t machine_address_space(void)
{
    struct rlimit limit;
    uint64_t pages = 0;
    if (getrlimit(RLIMIT_AS, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%" SCNu64, &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    uint64_t used = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

static void *wait_for_others(void *started)
{
    pthread_mutex_lock(started);
    pthread_mutex_unlock(started);
    return NULL;
}

int machine_threads(int wanted)
{
    pthread_mutex_t started = PTHREAD_MUTEX_INITIALIZER;
    pthread_t *threads = wanted > 0 ? malloc((size_t)wanted * sizeof *threads) : NULL;
    int n = 0;
    pthread_mutex_lock(&started);                /* so that all of them are there at once */
    while (threads && n < wanted && pthread_create(&threads[n], NULL, wait_for_others, &started) == 0)
        n++;
    pthread_mutex_unlock(&started);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    return n;
}

int machine_cpus(void)
{
    uint64_t quota = cgroup_limit("cpu.max", cpus_in), there = (uint64_t)omp_get_num_procs();
    return (int)(quota < there ? quota : there);
}

int machine_numa_nodes(void)
{
    int last = 0, c;
    FILE *file = fopen("/sys/devices/system/node/online", "r");
    if (!file)
        return 0;
    while (fscanf(file, "%d", &last) == 1 && ((c = fgetc(file)) == '-' || c == ','))   /* "0-1", "0,2-3" */
        ;
    fclose(file);
    return last + 1;
}

/* A number that follows a name in one of the files the kernel keeps of this process; UINT64_MAX: none. */
static uint64_t kib_of(const char *path, const char *format)
{
    char line[256];
    uint64_t kib, bytes = UINT64_MAX;
    FILE *file = fopen(path, "r");
    while (file && bytes == UINT64_MAX && fgets(line, sizeof line, file))
        if (sscanf(line, format, &kib) == 1)
            bytes = kib * 1024;
    if (file)
        fclose(file);
    return bytes;
}

struct machine_usage machine_usage(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    uint64_t unit = 1024;
#ifdef __APPLE__
    unit = 1;
#endif
    /* On Linux ru_maxrss is never below what the process was that started this one. */
    uint64_t peak = kib_of("/proc/self/status", "VmHWM: %" SCNu64);
    return (struct machine_usage){(double)u.ru_utime.tv_sec + (double)u.ru_utime.tv_usec / 1e6,
                                  (double)u.ru_stime.tv_sec + (double)u.ru_stime.tv_usec / 1e6,
                                  peak < UINT64_MAX ? peak : (uint64_t)u.ru_maxrss * unit};
}

uint64_t machine_huge_pages(void)
{
    return kib_of("/proc/self/smaps_rollup", "AnonHugePages: %" SCNu64);
}
