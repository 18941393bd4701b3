/* SPDX-License-Identifier: MIT */
/* Finds the one resource that a faster run would need more of. CPU time decides first: the system counted it, and it
 * does not include time in the queue for a CPU. If CPUs were idle, the cause is the stage that was waited for longest
 * by the wall clock: six threads that wait for one disk at a time wait only once. */
#include <math.h>
#include <stdarg.h>
#include "report/report.h"

static const double TOO_SHORT = 0.2;             /* s: a shorter run is start-up, not sorting */
static const double CPUS_USED = 0.8;             /* share of the available CPU time: the CPUs are the bottleneck */
static const double WORTH_NAMING = 0.15;         /* share of the wall time */
static const double MEMORY_COSTS = 0.3;          /* share of all work, for data that did not fit into memory */
static const double FAULT = 1e-4;                /* s that a page from a disk takes, at least */

static void judge(struct report *r, enum report_bound bound, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void judge(struct report *r, enum report_bound bound, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    r->bound = bound;
    vsnprintf(r->why, sizeof r->why, format, values);
    va_end(values);
}

/* Approximate seconds of wall time in which at least one thread waited in one of the two stages. */
static double waited(const struct report *r, enum stage a, enum stage b)
{
    double sum = 0;
    for (int i = 0; i < (a == b ? 1 : 2); i++) {
        const struct report_stage *s = &r->stages[i ? b : a];
        sum += s->busy > 0 ? s->any_thread * s->blocked / s->busy : 0;
    }
    return fmin(sum, r->wall);
}

/* Seconds in all stages except resting ones, by the clock, including blocked time. */
static double sum_busy(const struct report *r)
{
    double sum = 0;
    for (enum stage stage = 0; stage < N_STAGES; stage++)
        sum += clocks_stage(stage)->kind == STAGE_RESTS ? 0 : r->stages[stage].busy;
    return sum;
}

/* Seconds per thread in the queue for a CPU. A thread is also in the queue when it wakes up to look for work, so the
 * result is at most the time that was busy without a CPU. If the system does not report the queue, it is the time that
 * was neither blocked nor on a CPU. */
static double in_queue(const struct report *r)
{
    double used = r->facts.user + r->facts.system, queue = r->facts.run_queue;
    if (r->facts.by_htslib)                      /* its threads are in no stage */
        queue = fmax(queue, 0);
    else
        queue = queue < 0 ? report_work(r) - used : fmin(queue, sum_busy(r) - used);
    return fmin(fmax(queue, 0) / r->n_threads, r->wall);
}

double report_cpu_share(const struct report *r)
{
    const struct report_facts *f = &r->facts;
    int cpus = f->cpus > 0 && f->cpus < r->n_threads ? f->cpus : r->n_threads;
    return r->wall > 0 ? fmin((f->user + f->system) / (r->wall * cpus), 1) : 0;
}

static void blame_cpu(struct report *r)
{
    enum stage most = STAGE_OTHER;
    double all = report_work(r);
    for (enum stage stage = 0; stage < N_STAGES; stage++)
        if (clocks_stage(stage)->kind != STAGE_RESTS
            && report_worked(&r->stages[stage]) > report_worked(&r->stages[most]))
            most = stage;
    double share = all > 0 ? report_worked(&r->stages[most]) / all : 0;
    judge(r, REPORT_BOUND_CPU, "%.0f %% of the available CPU time was used, %s (%.0f %%) to %s.",
          100 * report_cpu_share(r), share > 0.5 ? "most of it" : "the largest part of it", 100 * share,
          clocks_stage(most)->what);
}

/* Blames memory if a sort with more of it would have less work. Returns whether it did. */
static bool blame_memory(struct report *r)
{
    double all = report_work(r), fetched = (double)r->facts.major_faults * FAULT;
    double extra = report_worked(&r->stages[STAGE_PACK]) + report_worked(&r->stages[STAGE_UNPACK])
                 + report_worked(&r->stages[STAGE_SPILL_WRITE]) + report_worked(&r->stages[STAGE_SPILL_READ]);
    if (fetched >= WORTH_NAMING * r->wall * r->n_threads)
        judge(r, REPORT_BOUND_MEMORY, "the machine had too little: %llu pages had to be read back from disk.",
              (unsigned long long)r->facts.major_faults);
    else if (all > 0 && extra >= MEMORY_COSTS * all)
        judge(r, REPORT_BOUND_MEMORY, "%.0f %% of all work was for data that did not fit into it.", 100 * extra / all);
    return r->bound == REPORT_BOUND_MEMORY;
}

/* Blames the stage that was waited for longest. */
static void blame_waiting(struct report *r)
{
    double read = waited(r, STAGE_READ, STAGE_READ), write = waited(r, STAGE_WRITE, STAGE_WRITE);
    double temp = waited(r, STAGE_SPILL_WRITE, STAGE_SPILL_READ), queue = in_queue(r);
    double alone = r->n_threads > 1 ? r->serial : 0;          /* with one thread it is all the work */
    double most = fmax(fmax(fmax(read, write), fmax(temp, queue)), alone);
    if (most < WORTH_NAMING * r->wall)
        judge(r, REPORT_BOUND_NONE, "%.0f %% of the available CPU time was used, and no wait was long.",
              100 * report_cpu_share(r));
    else if (most == alone)
        judge(r, REPORT_BOUND_ONE_THREAD, "the work that only one thread can do takes %.1f of %.1f s.", alone, r->wall);
    else if (most == queue)
        judge(r, REPORT_BOUND_OTHERS, "threads that had work waited for a CPU for %.1f of %.1f s.", queue, r->wall);
    else if (most == temp)
        judge(r, REPORT_BOUND_TEMP, "threads waited for temporary data for %.1f of %.1f s.", temp, r->wall);
    else if (most == write)
        judge(r, r->facts.output_is == REPORT_PIPE ? REPORT_BOUND_CONSUMER : REPORT_BOUND_OUTPUT,
              "threads waited for the output for %.1f of %.1f s.", write, r->wall);
    else
        judge(r, r->facts.input_is == REPORT_PIPE ? REPORT_BOUND_PRODUCER : REPORT_BOUND_INPUT,
              "threads waited for the input for %.1f of %.1f s.", read, r->wall);
}

void report_judge(struct report *r)
{
    r->bound = REPORT_BOUND_NONE;
    if (r->wall < TOO_SHORT)
        judge(r, REPORT_BOUND_NONE, "%.2f s is too short for a verdict.", r->wall);
    else if (blame_memory(r))
        return;
    else if (report_cpu_share(r) >= CPUS_USED)
        blame_cpu(r);
    else
        blame_waiting(r);
}

const char *report_bound_key(enum report_bound bound)
{
    static const char *const keys[] = {"nothing", "cpu", "input", "output", "temporary_disk", "memory",
                                       "pipe_producer", "pipe_consumer", "one_thread", "other_programs"};
    return keys[bound];
}

const char *report_bound_name(enum report_bound bound)
{
    static const char *const names[] = {
        "nothing alone", "the CPU", "the input", "the output", "the temporary disk", "memory",
        "the producer of the pipe", "the consumer of the pipe", "one thread", "other programs on the CPUs"};
    return names[bound];
}
