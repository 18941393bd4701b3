/* SPDX-License-Identifier: MIT */
/* Measures the cost of a task in the OpenMP runtime: one thread creates them, all run them, as in samtools-omp.
 *
 *   make build/task_cost
 *   OMP_WAIT_POLICY=passive build/task_cost [WORK_NS [BLOCKS]]
 *
 * WORK_NS: how long each block takes (0). Prints for 2 to 16 threads the wall time per task, and how
 * long the creating thread needs for each, for groups of 1 to 8 blocks per task. */
#include <omp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void work(double ns)
{
    for (double end = now() + ns; ns > 0 && now() < end;)
        ;
}

/* Bounds the pending tasks, as the rings do; libgomp would run tasks at once beyond 64 per thread. */
static void measure(int threads, int group, long blocks, double work_ns)
{
    enum { PENDING_PER_THREAD = 16 };
    _Atomic long done = 0;
    double start = 0, created = 0, wall = 0;
    #pragma omp parallel num_threads(threads)
    if (omp_get_thread_num() == 0) {
        start = now();
        for (long i = 0; i < blocks; i += group) {
            while (i - atomic_load(&done) > (long)threads * PENDING_PER_THREAD * group)
                ;
            double before = now();
            #pragma omp task default(none) shared(done) firstprivate(group, work_ns)
            {
                for (int j = 0; j < group; j++)
                    work(work_ns);
                atomic_fetch_add(&done, group);
            }
            created += now() - before;
        }
        #pragma omp taskwait
        wall = now() - start;
    }
    printf("%7d %5d %17.0f %21.0f\n", threads, group, created / (double)blocks, wall / (double)blocks);
}

int main(int argc, char **argv)
{
    double work_ns = argc > 1 ? atof(argv[1]) : 0;
    long blocks = argc > 2 ? atol(argv[2]) : 200000;
    printf("threads group  create ns/block    all threads ns/block\n");
    for (int threads = 2; threads <= 16; threads *= 2)
        for (int group = 1; group <= 8; group *= 2)
            measure(threads, group, blocks, work_ns);
    return 0;
}
