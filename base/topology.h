/* SPDX-License-Identifier: MIT */
/* How the CPUs that we may use lie in the machine, from /sys/devices/system (Linux). Serial. */
#ifndef TOPOLOGY_H
#define TOPOLOGY_H

#include "base/affinity.h"

/* Numbers; 0: not known. */
struct topology {
    int cores;                   /* a core has several CPUs if it runs several threads at a time (SMT) */
    int sockets;
    int nodes;                   /* NUMA nodes with such CPUs */
};

/* Those of these CPUs. root: what to put before /sys; "" except in tests. */
struct topology topology_of(const char *root, const struct affinity *cpus);

/* How many cores each socket has of these CPUs, in the order of the sockets' numbers. Returns how many sockets there
 * are, at most `most`; 0: not known. */
int topology_socket_cores(const char *root, const struct affinity *cpus, int cores[], int most);

#endif
