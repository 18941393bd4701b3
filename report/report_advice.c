/* SPDX-License-Identifier: MIT */
/* Advice from a report's numbers: possible findings, the most important first. Advice names only options that all
 * commands have, and -T, which the commands that spill have; -l and -m mean other things in some commands. */
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include "report/report.h"

static const double TOO_SHORT = 0.2;             /* s: a shorter run is start-up, not sorting */
static const double MUCH_WAITING = 0.15;         /* share of the wall time */
static const double MOSTLY_BUSY = 0.85, HALF_IDLE = 0.7;   /* shares of the team's time */
static const double SERIAL_BOUND = 0.5;          /* share of the wall time */
static const double CPU_TAKEN = 0.75;  /* share of the time in stages: with less, other programs used the CPUs */
static const double MARGIN = 1.25;               /* spare threads, beyond those that had work */
static const double DEFLATE_RULES = 0.6;         /* share of all work */
enum { PLACES_MATTER = 8 };                      /* threads; with fewer, places hardly matter */
static const uint64_t PAGES_MATTER = (uint64_t)1 << 30;   /* bytes; with less, their size and place hardly matter */
static const uint64_t MIB = (uint64_t)1 << 20;

/* Adds a sentence if there is room for one. */
__attribute__((format(printf, 2, 3))) static void say(struct report *r, const char *format, ...)
{
    va_list values;
    int said = 0;
    while (said < REPORT_ADVICE_MAX && r->advice[said][0])
        said++;
    va_start(values, format);
    if (said < REPORT_ADVICE_MAX)
        vsnprintf(r->advice[said], REPORT_ADVICE_SIZE, format, values);
    va_end(values);
}

/* Returns whether each thread has a CPU. Threads that share one look busy while they wait for it, so their times mean
 * little. */
static bool have_cpus(const struct report *r)
{
    return r->facts.cpus == 0 || r->n_threads <= r->facts.cpus;
}

/* Returns whether other programs use the CPUs. If they do, the times mean little. */
static bool cpus_taken(const struct report *r)
{
    return !r->facts.by_htslib && have_cpus(r) && r->facts.user + r->facts.system < CPU_TAKEN * report_work(r);
}

/* The number of threads that would have been enough. */
static int threads_needed(const struct report *r)
{
    int needed = (int)ceil(r->busy * r->n_threads * MARGIN);
    return needed < 1 ? 1 : needed < r->n_threads ? needed : r->n_threads;
}

/* ---- disks and pipes ---- */

static enum stage most_blocked(const struct report *r)
{
    enum stage most = STAGE_READ;
    for (enum stage stage = 0; stage < N_STAGES; stage++)
        if (report_is_io(stage) && r->stages[stage].blocked > r->stages[most].blocked)
            most = stage;
    return most;
}

static void advise_on_files(struct report *r)
{
    static const char *const from[] = {
        [REPORT_REGULAR] = "Copy the input to a local or faster disk",
        [REPORT_PIPE] = "Give more CPUs to the program that writes to the pipe",
        [REPORT_REMOTE] = "Download the input first",
    };
    static const char *const to[] = {
        [REPORT_REGULAR] = "Write to a local or faster disk, or raise the compression level",
        [REPORT_PIPE] = "Give more CPUs to the program that reads from the pipe",
        [REPORT_REMOTE] = "Write to a local disk",
    };
    enum stage stage = most_blocked(r);
    const struct report_stage *s = &r->stages[stage];
    if (s->blocked < MUCH_WAITING * r->wall)
        return;
    if (stage == STAGE_READ)
        say(r, "%s: %.120s was read at %.0f MB/s.", from[r->facts.input_is], r->facts.input, report_speed(s));
    else if (stage == STAGE_WRITE)
        say(r, "%s: %.120s was written at %.0f MB/s.", to[r->facts.output_is], r->facts.output, report_speed(s));
    else
        say(r, "Name a faster disk with -T: temporary data moved at %.0f MB/s.", report_speed(s));
}

static void advise_on_memory(struct report *r)
{
    static const uint64_t KEY = 16;
    uint64_t needed = r->bytes + r->facts.records * KEY, total = needed + needed / 8 + 128 * MIB;
    if (r->stages[STAGE_SPILL_WRITE].events > 0 && total < r->facts.machine_memory)
        say(r, "Use --total-memory %lluM to keep everything in memory: %.1f GB were spilled to disk.",
            (unsigned long long)(total / MIB + 1),
            (double)r->stages[STAGE_SPILL_WRITE].bytes / 1e9);
}

/* ---- threads ---- */

/* The value of -@ for n_threads threads. */
static int named(const struct report *r, int n_threads)
{
    return n_threads - r->facts.more_threads;
}

/* Names the two serial stages that take the most time. */
static void name_serial(const struct report *r, char *text, size_t size)
{
    enum stage first = STAGE_OTHER, second = STAGE_IDLE;   /* IDLE is never serial: 0 s */
    const double *took = r->serial_stages;
    for (enum stage stage = 0; stage < N_STAGES; stage++)
        if (took[stage] > took[first])
            first = stage;
    for (enum stage stage = 0; stage < N_STAGES; stage++)
        if (stage != first && took[stage] > took[second])
            second = stage;
    int n = snprintf(text, size, "%s %.1f s", clocks_stage(first)->name, took[first]);
    if (took[second] > took[first] / 10)
        snprintf(text + n, size - (size_t)n, ", %s %.1f s", clocks_stage(second)->name, took[second]);
}

static void advise_on_threads(struct report *r)
{
    char what[100];
    int needed = threads_needed(r);
    if (r->serial >= SERIAL_BOUND * r->wall && r->n_threads > 1 && r->busy <= HALF_IDLE) {
        name_serial(r, what, sizeof what);
        say(r, "More than %d threads do not help: one thread must do %s.", needed, what);
    }
    if (needed <= r->n_threads * 3 / 4 && r->idle_threads > 1)
        say(r, "Use -@ %d: %d of %d threads were idle.", named(r, needed), r->idle_threads, r->n_threads);
    else if (needed <= r->n_threads * 3 / 4)
        say(r, "Use -@ %d: on average %.1f of %d threads had work.", named(r, needed), r->busy * r->n_threads,
            r->n_threads);
}

/* Advice about idle CPUs. One thread for each core comes first. */
static void advise_on_cores(struct report *r)
{
    const struct report_facts *f = &r->facts;
    int cores = f->topology.cores > 0 && f->topology.cores < f->cpus ? f->topology.cores : f->cpus;
    if (report_busy_share(r) <= MOSTLY_BUSY || f->cpus <= r->n_threads)
        return;
    if (cores == f->cpus)
        say(r, "Use -@ %d: there are %d CPUs.", named(r, f->cpus), f->cpus);
    else if (r->n_threads < cores)
        say(r, "Use -@ %d: there are %d cores (%d CPUs).", named(r, cores), cores, f->cpus);
    else
        say(r, "Use -@ %d for some 20 to 30 %% more speed: each core runs more than one thread.", named(r, f->cpus));
}

/* Advice about threads that the system may move. On several nodes that takes them away from their memory. If there are
 * not more threads than cores, two may share one core while another is free. */
static void advise_on_places(struct report *r)
{
    static const char set[] = "Set OMP_PLACES=cores OMP_PROC_BIND=spread";
    const struct topology *t = &r->facts.topology;
    if (r->facts.bound || r->n_threads < PLACES_MATTER)
        return;
    if (t->nodes > 1 || t->sockets > 1)
        say(r, "%s, or use numactl --interleave=all: threads may move between %d %s.", set,
            t->nodes > 1 ? t->nodes : t->sockets, t->nodes > 1 ? "NUMA nodes" : "sockets");
    else if (t->cores > 0 && t->cores < r->facts.cpus && r->n_threads <= t->cores)
        say(r, "%s: two threads may share a core while another is free.", set);
}

static void advise_on_machine(struct report *r)
{
    const struct report_facts *f = &r->facts;
    advise_on_cores(r);
    advise_on_places(r);
    if (f->huge == 0 && f->peak_rss != REPORT_UNKNOWN && f->peak_rss > PAGES_MATTER)
        say(r, "Set /sys/kernel/mm/transparent_hugepage/enabled to madvise or always: no huge pages were available.");
}

void report_advise(struct report *r)
{
    const struct report_facts *f = &r->facts;
    double deflate = r->stages[STAGE_DEFLATE].busy, all = report_work(r);
    bool times_count = have_cpus(r) && !cpus_taken(r);
    memset(r->advice, 0, sizeof r->advice);
    if (r->wall < TOO_SHORT)                     /* findings would be random */
        return;
    if (!have_cpus(r))
        say(r, "Use -@ %d: %d threads share %d CPU%s.", named(r, f->cpus), r->n_threads, f->cpus,
            f->cpus > 1 ? "s" : "");
    if (cpus_taken(r))
        say(r, "Stop other programs on these CPUs: %.1f s of work got only %.1f s of CPU time.", all,
            f->user + f->system);
    if (times_count)
        advise_on_files(r);
    advise_on_memory(r);
    if (times_count)
        advise_on_threads(r);
    advise_on_machine(r);
    if (r->busy > MOSTLY_BUSY && deflate > DEFLATE_RULES * all && f->level != 1)
        say(r, "Use --output-fmt-option level=1 if the file may be somewhat larger: compression is most of the work.");
}
