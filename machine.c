/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
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

/* The smallest limit on the way from our cgroup (v2) up to the root. */
static uint64_t cgroup2_limit(const char *group)
{
    uint64_t least = UINT64_MAX;
    char *path = strdup(group);
    for (char *slash; path; *slash = 0) {
        char *file = NULL;
        if (asprintf(&file, "/sys/fs/cgroup%s/memory.max", path) < 0)
            break;
        uint64_t limit = limit_in(file);
        free(file);
        least = limit < least ? limit : least;
        if (!(slash = strrchr(path, '/')))
            break;
    }
    free(path);
    return least;
}

static uint64_t cgroup_limit(void)
{
    char line[4096];
    uint64_t least = limit_in("/sys/fs/cgroup/memory/memory.limit_in_bytes");   /* v1 */
    FILE *file = fopen("/proc/self/cgroup", "r");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "0::", 3) == 0) {
            uint64_t limit = cgroup2_limit(strcmp(line + 3, "/") == 0 ? "" : line + 3);
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
    uint64_t limit = cgroup_limit();
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
