/* SPDX-License-Identifier: MIT */
/* The layout of the CPUs that we may use, from /sys/devices/system (Linux). Serial. */
#ifndef TOPOLOGY_H
#define TOPOLOGY_H

#include "base/affinity.h"

/* Counts; 0: unknown. */
struct topology {
    int cores;                   /* a core has several CPUs if it runs several threads at a time (SMT) */
    int sockets;
    int nodes;                   /* NUMA nodes that have such CPUs */
};

/* The topology of these CPUs. root: prefix of /sys; "" except in tests. */
struct topology topology_of(const char *root, const struct affinity *cpus);

/* The number of cores that each socket has among these CPUs, in the order of the sockets' numbers. Returns the number
 * of sockets, at most `most`; 0: unknown. */
int topology_socket_cores(const char *root, const struct affinity *cpus, int cores[], int most);

#endif
