/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/cgroup.h"

/* A limit of a group, and the files of the group's folder that hold it. */
struct resource {
    const char *controller;      /* its name in version 1 */
    const char *v1, *v1_period;  /* a time quota has its period in a separate file; otherwise NULL */
    const char *v2;              /* holds the quota and the period */
};

/* Reads up to two numbers from a file. Returns how many it read. "max" does not count as a number. */
static int read_two_numbers(const char *folder, const char *name, int64_t *first, int64_t *second)
{
    char *path = NULL;
    FILE *file = asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : fopen(path, "r");
    int n = file ? fscanf(file, "%" SCNd64 " %" SCNd64, first, second) : 0;
    if (file)
        fclose(file);
    free(path);
    return n;
}

/* The limit of one group; UINT64_MAX if there is none: the number is missing, "max" or -1. */
static uint64_t limit_in(const char *folder, const struct resource *r, bool is_v2)
{
    int64_t limit = -1, period = 1, none;
    int is_quota = r->v1_period != NULL, n = read_two_numbers(folder, is_v2 ? r->v2 : r->v1, &limit, &period);
    if (!is_v2 && is_quota)
        n += read_two_numbers(folder, r->v1_period, &period, &none);
    if (n < 1 + is_quota || limit < is_quota || period <= 0)
        return UINT64_MAX;
    return is_quota && limit < period ? 1 : (uint64_t)(limit / period);
}

/* The smallest limit on the way from the group up to where its hierarchy is mounted: under the
 * controller's name in version 1, directly under /sys/fs/cgroup in version 2. */
static uint64_t least_limit(const char *root, const struct resource *r, bool is_v2, const char *group)
{
    uint64_t least = UINT64_MAX;
    char *path = NULL, *slash;
    int length = asprintf(&path, "%s/sys/fs/cgroup/%s%s", root, is_v2 ? "" : r->controller, group);
    if (length < 0)
        return least;
    do {
        uint64_t limit = limit_in(path, r, is_v2);
        least = limit < least ? limit : least;
        if ((slash = strrchr(path + length - strlen(group), '/')))
            *slash = 0;
    } while (slash);
    free(path);
    return least;
}

/* Returns whether the name is in a comma-separated list. Cuts the list up. */
static bool listed(const char *name, char *list)
{
    for (char *word; (word = strsep(&list, ","));)
        if (strcmp(word, name) == 0)
            return true;
    return false;
}

static uint64_t limit_of_all(const char *root, const struct resource *r)
{
    uint64_t least = UINT64_MAX;
    char *line = NULL, *path = NULL;
    size_t room = 0;
    FILE *file = asprintf(&path, "%s/proc/self/cgroup", root) < 0 ? NULL : fopen(path, "r");
    while (file && getline(&line, &room, file) > 0) {
        char *rest = line, *number = strsep(&rest, ":"), *list = strsep(&rest, ":"), *group = strsep(&rest, "\n");
        bool is_v2 = list && !*list;
        if (!number || !group || (!is_v2 && !listed(r->controller, list)))
            continue;
        uint64_t limit = least_limit(root, r, is_v2, group);
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
    static const struct resource memory = {
        .controller = "memory",
        .v1 = "memory.limit_in_bytes",
        .v2 = "memory.max",
    };
    return limit_of_all(root, &memory);
}

uint64_t cgroup_cpus(const char *root)
{
    static const struct resource cpu = {
        .controller = "cpu",
        .v1 = "cpu.cfs_quota_us",
        .v1_period = "cpu.cfs_period_us",
        .v2 = "cpu.max",
    };
    return limit_of_all(root, &cpu);
}
