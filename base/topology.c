/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include "base/topology.h"

/* The numbers in a file like "0-3,8", below AFFINITY_CPUS. {0}: it cannot be read. */
static struct affinity read_cpu_list(const char *path)
{
    struct affinity set = {0};
    FILE *file = fopen(path, "r");
    for (int from, to, c = ','; file && c == ',' && fscanf(file, "%d", &from) == 1;) {
        to = from;
        if ((c = fgetc(file)) == '-' && fscanf(file, "%d", &to) == 1)
            c = fgetc(file);
        for (int i = from; i >= 0 && i <= to && i < AFFINITY_CPUS; i++)
            affinity_add(&set, i);
    }
    if (file)
        fclose(file);
    return set;
}

/* The first number in a file of the CPU; -1: none. */
static int first_in(const char *root, int cpu, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%d/topology/%s", root, cpu, name);
    struct affinity set = read_cpu_list(path);
    for (int i = 0; i < AFFINITY_CPUS; i++)
        if (affinity_has(&set, i))
            return i;
    return -1;
}

/* Memory of other nodes is left out, and so are nodes without CPUs. */
static bool has_allowed_cpu(const char *root, int node, const struct affinity *cpus)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/sys/devices/system/node/node%d/cpulist", root, node);
    struct affinity set = read_cpu_list(path);
    for (int i = 0; i < AFFINITY_CPUS; i++)
        if (affinity_has(&set, i) && affinity_has(cpus, i))
            return true;
    return false;
}

static int count_nodes(const char *root, const struct affinity *cpus)
{
    char path[4096];
    int n = 0;
    snprintf(path, sizeof path, "%s/sys/devices/system/node/online", root);
    struct affinity online = read_cpu_list(path);
    for (int node = 0; node < AFFINITY_CPUS; node++)
        n += affinity_has(&online, node) && has_allowed_cpu(root, node, cpus);
    return n;
}

/* A core is identified by its first CPU. Linux before 5.3 has only the second of the two names. */
static int core_of(const char *root, int cpu)
{
    int core = first_in(root, cpu, "core_cpus_list");
    return core >= 0 ? core : first_in(root, cpu, "thread_siblings_list");
}

static int socket_of(const char *root, int cpu)
{
    return first_in(root, cpu, "physical_package_id");
}

/* The cores of those CPUs that are on the socket; -1: on any. */
static int cores_on(const char *root, const struct affinity *cpus, int socket)
{
    struct affinity cores = {0};
    for (int cpu = 0; cpu < AFFINITY_CPUS; cpu++) {
        bool counts = affinity_has(cpus, cpu) && (socket < 0 || socket_of(root, cpu) == socket);
        int core = counts ? core_of(root, cpu) : -1;
        if (core >= 0)
            affinity_add(&cores, core);
    }
    return affinity_count(&cores);
}

static struct affinity sockets_of(const char *root, const struct affinity *cpus)
{
    struct affinity sockets = {0};
    for (int cpu = 0; cpu < AFFINITY_CPUS; cpu++) {
        int socket = affinity_has(cpus, cpu) ? socket_of(root, cpu) : -1;
        if (socket >= 0)
            affinity_add(&sockets, socket);
    }
    return sockets;
}

struct topology topology_of(const char *root, const struct affinity *cpus)
{
    struct affinity sockets = sockets_of(root, cpus);
    return (struct topology){cores_on(root, cpus, -1), affinity_count(&sockets), count_nodes(root, cpus)};
}

int topology_socket_cores(const char *root, const struct affinity *cpus, int cores[], int most)
{
    struct affinity sockets = sockets_of(root, cpus);
    int n = 0;
    for (int socket = 0; socket < AFFINITY_CPUS && n < most; socket++) {
        int on_it = affinity_has(&sockets, socket) ? cores_on(root, cpus, socket) : 0;
        if (on_it > 0)
            cores[n++] = on_it;
    }
    return n;
}
