/* SPDX-License-Identifier: MIT */
/* Cycles and instructions of the program's own code, as the CPU counts them (perf_event_open(2), Linux). */
#ifndef CPU_COUNTERS_H
#define CPU_COUNTERS_H

#include <stdint.h>

enum { CPU_CYCLES, CPU_INSTRUCTIONS, N_CPU_COUNTERS };
#define CPU_COUNT_UNKNOWN UINT64_MAX

struct cpu_counters {
    int fds[N_CPU_COUNTERS];     /* -1: not counted */
    int error;                   /* why not: an errno; 0: all are counted */
};

/* Opens a counter of this thread and of those that it will make. Its descriptor gives three numbers: the count, the ns
 * in which it was wanted, the ns in which it counted. -1: failed, with errno. */
typedef int cpu_counter_open_fn(int counter);
cpu_counter_open_fn cpu_counter_open;

/* Begins to count: call it before threads are made. open: cpu_counter_open, except in tests. */
void cpu_counters_begin(struct cpu_counters *counters, cpu_counter_open_fn *open);

/* What was counted until now, or CPU_COUNT_UNKNOWN. It is an estimate if others used the counter, too, so that
 * it did not count all the time. */
uint64_t cpu_counters_get(const struct cpu_counters *counters, int counter);

/* Why there are no counts, and what would help: a constant. */
const char *cpu_counters_why(const struct cpu_counters *counters);

void cpu_counters_end(struct cpu_counters *counters);

#endif
