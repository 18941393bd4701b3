/* SPDX-License-Identifier: MIT */
/* The limits of the control groups (Linux) of this process: of its group and all groups above that are mounted here.
 *
 * /proc/self/cgroup has a line "N:CONTROLLERS:/PATH" for each hierarchy of version 1 and "0::/PATH" for version 2
 * (cgroups(7)). The paths begin at /sys/fs/cgroup/CONTROLLER and at /sys/fs/cgroup. In a container the upper part of a
 * path may be missing; then the group that is mounted is the container's own.
 *
 * root: prefix of /proc and /sys; "" except in tests. */
#ifndef CGROUP_H
#define CGROUP_H

#include <stdint.h>

/* Limit in bytes of memory; UINT64_MAX if no limit is known. */
uint64_t cgroup_memory(const char *root);

/* Number of CPUs that the CPU time quota amounts to, rounded down, at least 1; UINT64_MAX if no limit is known. */
uint64_t cgroup_cpus(const char *root);

#endif
