/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/perf_event.h>
#include <sys/syscall.h>
#endif
#include "base/cpu_counters.h"

int cpu_counter_open(int counter)
{
#ifdef __linux__
    static const uint64_t events[N_CPU_COUNTERS] = {PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_INSTRUCTIONS};
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.type = PERF_TYPE_HARDWARE;
    attr.size = sizeof attr;
    attr.config = events[counter];
    attr.inherit = 1;
    attr.exclude_kernel = attr.exclude_hv = 1;   /* who is not root may count no more (perf_event_paranoid 2) */
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
#else
    (void)counter;
    errno = ENOSYS;
    return -1;
#endif
}

void cpu_counters_begin(struct cpu_counters *c, cpu_counter_open_fn *open)
{
    c->error = 0;
    for (int i = 0; i < N_CPU_COUNTERS; i++) {
        c->fds[i] = open(i);
        if (c->fds[i] < 0 && !c->error)
            c->error = errno;
    }
}

uint64_t cpu_counters_get(const struct cpu_counters *c, int counter)
{
    struct { uint64_t count, wanted, counted; } now;
    if (c->fds[counter] < 0 || read(c->fds[counter], &now, sizeof now) != (ssize_t)sizeof now || now.counted == 0)
        return CPU_COUNT_UNKNOWN;
    return now.counted >= now.wanted ? now.count
         : (uint64_t)((double)now.count * ((double)now.wanted / (double)now.counted));
}

const char *cpu_counters_why(const struct cpu_counters *c)
{
    switch (c->error) {
    case 0: return "the counters were all in use";
    case EACCES: case EPERM:
        return "not allowed; /proc/sys/kernel/perf_event_paranoid of 2 or less and the container's rules would";
    case ENOENT: case EOPNOTSUPP: case ENODEV: return "this machine, often a virtual one, has no such counters";
    case ENOSYS: return "this system, or its container, has no perf_event_open";
    default: return "the system refused";
    }
}

void cpu_counters_end(struct cpu_counters *c)
{
    for (int i = 0; i < N_CPU_COUNTERS; i++)
        if (c->fds[i] >= 0)
            close(c->fds[i]);
    c->fds[CPU_CYCLES] = c->fds[CPU_INSTRUCTIONS] = -1;
}
