/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <omp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include "base/affinity.h"
#include "base/cgroup.h"
#include "base/machine.h"

/* Reads the number of KiB that follows a name in one of the kernel's files about this process, and returns it in bytes.
 * UINT64_MAX: there is no such number. */
static uint64_t kib_of(const char *path, const char *name)
{
    char line[256];
    uint64_t bytes = UINT64_MAX;
    size_t n = strlen(name);
    FILE *file = fopen(path, "r");
    while (file && bytes == UINT64_MAX && fgets(line, sizeof line, file))
        if (strncmp(line, name, n) == 0 && line[n] == ':')
            bytes = strtoull(line + n + 1, NULL, 10) * 1024;
    if (file)
        fclose(file);
    return bytes;
}

uint64_t machine_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    uint64_t physical = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : UINT64_MAX;
    uint64_t limit = cgroup_memory("");
    return limit < physical ? limit : physical;
}

uint64_t machine_address_space(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    uint64_t used = kib_of("/proc/self/status", "VmSize");
    if (used == UINT64_MAX)
        used = 0;
    return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

void machine_share_heaps(void)
{
#ifdef M_ARENA_MAX
    enum { HEAPS = 2 };
    if (machine_address_space() < UINT64_MAX)
        mallopt(M_ARENA_MAX, HEAPS);
#endif
}

void machine_keep_heaps_small(void)
{
#ifdef M_MMAP_THRESHOLD
    enum { LARGE = 128 << 10 };
    mallopt(M_MMAP_THRESHOLD, LARGE);
#endif
}

void machine_give_back_heaps(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

static void *wait_for_others(void *started)
{
    pthread_mutex_lock(started);
    pthread_mutex_unlock(started);
    return NULL;
}

int machine_threads(int wanted)
{
    enum { ROOM = 32 << 20 };                    /* bytes of address space for the work of all threads */
    void *room = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return 0;
    pthread_mutex_t started = PTHREAD_MUTEX_INITIALIZER;
    pthread_t *threads = wanted > 0 ? malloc((size_t)wanted * sizeof *threads) : NULL;
    int n = 0;
    pthread_mutex_lock(&started);                /* so that all of them exist at the same time */
    while (threads && n < wanted && pthread_create(&threads[n], NULL, wait_for_others, &started) == 0)
        n++;
    pthread_mutex_unlock(&started);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    munmap(room, ROOM);
    return n;
}

int machine_team(int wanted, int later, const char **why)
{
    int limit = omp_get_thread_limit(), most = wanted < limit ? wanted : limit;
    int n = most > 1 ? 1 + machine_threads(most - 1 + later) - later : 1;
    *why = n < most ? "a limit on processes (ulimit -u, a container's) or on memory is reached"
                    : "OMP_THREAD_LIMIT allows no more";
    return n > 1 ? n : 1;
}

uint64_t machine_open_files(uint64_t wanted)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return wanted;
    rlim_t before = limit.rlim_cur;
    if (before < wanted) {
        limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
            limit.rlim_cur = before;
    }
    return limit.rlim_cur;
}

int machine_cpus(void)
{
    struct affinity allowed = affinity_allowed();
    int there = allowed.known ? affinity_count(&allowed) : omp_get_num_procs();
    uint64_t quota = cgroup_cpus("");
    return quota < (uint64_t)there ? (int)quota : there;
}

struct topology machine_topology(void)
{
    struct affinity allowed = affinity_allowed();
    return topology_of("", &allowed);
}

struct machine_usage machine_usage(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    uint64_t unit = 1024;
#ifdef __APPLE__
    unit = 1;
#endif
    /* On Linux ru_maxrss is at least the peak of the process that started this one. */
    uint64_t peak = kib_of("/proc/self/status", "VmHWM");
    return (struct machine_usage){(double)u.ru_utime.tv_sec + (double)u.ru_utime.tv_usec / 1e6,
                                  (double)u.ru_stime.tv_sec + (double)u.ru_stime.tv_usec / 1e6,
                                  peak < UINT64_MAX ? peak : (uint64_t)u.ru_maxrss * unit,
                                  (uint64_t)u.ru_majflt};
}

/* Linux's schedstat of a thread: time on a CPU, time in the queue, turns. All are zero if the kernel does not count
 * them. */
static bool add_queue(const char *path, uint64_t *ns)
{
    unsigned long long ran = 0, queued = 0;
    FILE *file = fopen(path, "r");
    bool counts = file && fscanf(file, "%llu %llu", &ran, &queued) == 2 && ran > 0;
    if (file)
        fclose(file);
    *ns += counts ? queued : 0;
    return counts;
}

uint64_t machine_run_queue(const char *root)
{
    char path[4096];
    uint64_t ns = 0;
    bool counts = false;
    snprintf(path, sizeof path, "%s/proc/self/task", root);
    DIR *tasks = opendir(path);
    for (const struct dirent *task; tasks && (task = readdir(tasks));) {
        snprintf(path, sizeof path, "%s/proc/self/task/%.32s/schedstat", root, task->d_name);
        counts |= task->d_name[0] != '.' && add_queue(path, &ns);
    }
    if (tasks)
        closedir(tasks);
    return counts ? ns : UINT64_MAX;
}

uint64_t machine_huge_pages(void)
{
    return kib_of("/proc/self/smaps_rollup", "AnonHugePages");
}

/* The function counts all code, whether or not it is in memory. How much of a file is in memory varies by MiB with the
 * page cache and with where the libraries are loaded, so two runs would make different plans. Linux before 4.5 does not
 * know RssAnon. */
uint64_t machine_program_memory(void)
{
    static uint64_t at_first = UINT64_MAX;
    static const char status[] = "/proc/self/status";
    if (at_first < UINT64_MAX)
        return at_first;
    uint64_t exe = kib_of(status, "VmExe"), lib = kib_of(status, "VmLib"), anon = kib_of(status, "RssAnon");
    at_first = exe < UINT64_MAX && lib < UINT64_MAX && anon < UINT64_MAX ? exe + lib + anon : kib_of(status, "VmRSS");
    if (at_first == UINT64_MAX)
        at_first = 0;
    return at_first;
}

/* The libraries, the OpenMP runtime and the allocator take memory for their own data after the start. libhts alone
 * may load 30 libraries, for URLs. These numbers are upper bounds for memory that nothing else counts, measured with
 * Debian's htslib. */
size_t machine_program_grown(size_t at_start, size_t most)
{
    static const size_t GROWS = (size_t)12 << 20, LEAST = (size_t)14 << 20;
    size_t grown = at_start + GROWS;
    grown = grown < most ? grown : most;
    return grown > LEAST ? grown : LEAST;
}

size_t machine_thread_memory(void)
{
    enum { TOUCHED = 160 << 10 };                /* bytes of its stack, and of the allocator's heap for it */
    return TOUCHED;
}
