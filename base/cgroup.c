/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/cgroup.h"

/* Reads a limit from the files in the folder of one group; UINT64_MAX if that group has none. */
typedef uint64_t limit_fn(const char *folder);

struct resource {
    const char *controller;      /* its name in version 1 */
    limit_fn *v1, *v2;
};

/* Reads up to two numbers from a file. Returns how many it read. "max" is no number. */
static int numbers_in(const char *folder, const char *name, int64_t *first, int64_t *second)
{
    char *path = NULL;
    FILE *file = asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : fopen(path, "r");
    int n = file ? fscanf(file, "%" SCNd64 " %" SCNd64, first, second) : 0;
    if (file)
        fclose(file);
    free(path);
    return n;
}

static uint64_t memory_in(const char *folder, const char *name)
{
    int64_t limit, none;
    return numbers_in(folder, name, &limit, &none) > 0 && limit >= 0 ? (uint64_t)limit : UINT64_MAX;
}

static uint64_t memory_v1(const char *folder)
{
    return memory_in(folder, "memory.limit_in_bytes");
}

static uint64_t memory_v2(const char *folder)
{
    return memory_in(folder, "memory.max");
}

static uint64_t cpus_of(int64_t quota, int64_t period)
{
    if (quota <= 0 || period <= 0)               /* -1: no quota */
        return UINT64_MAX;
    return quota < period ? 1 : (uint64_t)(quota / period);
}

static uint64_t cpus_v1(const char *folder)
{
    int64_t quota, period, none;
    bool both = numbers_in(folder, "cpu.cfs_quota_us", &quota, &none) > 0
             && numbers_in(folder, "cpu.cfs_period_us", &period, &none) > 0;
    return both ? cpus_of(quota, period) : UINT64_MAX;
}

static uint64_t cpus_v2(const char *folder)
{
    int64_t quota, period;
    return numbers_in(folder, "cpu.max", &quota, &period) == 2 ? cpus_of(quota, period) : UINT64_MAX;
}

/* The smallest limit on the way from the group up to where its hierarchy is mounted: under the
 * controller's name in version 1, directly under /sys/fs/cgroup in version 2. */
static uint64_t least_limit(const char *root, const char *controller, const char *group, limit_fn *limit_of)
{
    uint64_t least = UINT64_MAX;
    char *path = NULL, *slash;
    int length = asprintf(&path, "%s/sys/fs/cgroup/%s%s", root, controller, group);
    if (length < 0)
        return least;
    do {
        uint64_t limit = limit_of(path);
        least = limit < least ? limit : least;
        if ((slash = strrchr(path + length - strlen(group), '/')))
            *slash = 0;
    } while (slash);
    free(path);
    return least;
}

/* Whether the name is in a list that is separated by commas. */
static bool listed(const char *name, const char *list)
{
    size_t n = strlen(name), length;
    for (; (length = strcspn(list, ",")) > 0; list += length + (list[length] == ','))
        if (length == n && memcmp(list, name, n) == 0)
            return true;
    return false;
}

/* The limit that one line of /proc/self/cgroup leads to. The line comes without its newline. */
static uint64_t limit_by(char *line, const char *root, const struct resource *r)
{
    char *list = strchr(line, ':'), *group = list ? strchr(++list, ':') : NULL;
    if (!group)
        return UINT64_MAX;
    *group++ = 0;
    if (!*list)
        return least_limit(root, "", group, r->v2);
    return listed(r->controller, list) ? least_limit(root, r->controller, group, r->v1) : UINT64_MAX;
}

static uint64_t limit_of_all(const char *root, const struct resource *r)
{
    uint64_t least = UINT64_MAX;
    char *line = NULL, *path = NULL;
    size_t room = 0;
    FILE *file = asprintf(&path, "%s/proc/self/cgroup", root) < 0 ? NULL : fopen(path, "r");
    while (file && getline(&line, &room, file) > 0) {
        line[strcspn(line, "\n")] = 0;
        uint64_t limit = limit_by(line, root, r);
        least = limit < least ? limit : least;
    }
    if (file)
        fclose(file);
    free(line);
    free(path);
    return least;
}

uint64_t cgroup_memory(const char *root)
{
    return limit_of_all(root, &(struct resource){"memory", memory_v1, memory_v2});
}

uint64_t cgroup_cpus(const char *root)
{
    return limit_of_all(root, &(struct resource){"cpu", cpus_v1, cpus_v2});
}
