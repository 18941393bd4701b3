/* SPDX-License-Identifier: MIT */
/* What the numbers of a report mean for its reader: possible findings, the most important first. */
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include "report/report.h"

static const double TOO_SHORT = 0.2;             /* s: below this it is start-up, not sorting */
static const double MUCH_WAITING = 0.15;         /* of the wall time */
static const double MOSTLY_BUSY = 0.85, HALF_IDLE = 0.7;   /* of the team's time */
static const double SERIAL_BOUND = 0.5;          /* of the wall time */
static const double CPU_TAKEN = 0.75;            /* of the time in stages: with less CPU time, other
                                                  * programs had the CPUs */
static const double MARGIN = 1.25;               /* threads to spare, beyond those that had work */
static const double DEFLATE_RULES = 0.6;         /* of all work */
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

/* Threads that share a CPU look busy while they wait for it, so their times say little. */
static bool have_cpus(const struct report *r)
{
    return r->facts.cpus == 0 || r->n_threads <= r->facts.cpus;
}

/* The times also say little if other programs have the CPUs. */
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

static enum stage most_blocked(const struct report *r, double *share)
{
    double sum = 0;
    enum stage most = STAGE_READ;
    for (enum stage stage = 0; stage < N_STAGES; stage++) {
        if (!report_is_io(stage))
            continue;
        sum += r->stages[stage].blocked;
        if (r->stages[stage].blocked > r->stages[most].blocked)
            most = stage;
    }
    *share = sum > 0 ? r->stages[most].blocked / sum : 0;
    return most;
}

static void advise_on_files(struct report *r)
{
    static const char *const from[] = {
        [REPORT_REGULAR] = "copy the input to a local or faster disk",
        [REPORT_PIPE] = "the program that writes to the pipe sets the pace",
        [REPORT_REMOTE] = "download the input before sorting it",
    };
    static const char *const to[] = {
        [REPORT_REGULAR] = "write to a local or faster disk, or less with a higher -l",
        [REPORT_PIPE] = "the program that reads from the pipe sets the pace",
        [REPORT_REMOTE] = "write to a local disk",
    };
    double share;
    enum stage stage = most_blocked(r, &share);
    const struct report_stage *s = &r->stages[stage];
    if (s->blocked < MUCH_WAITING * r->wall)
        return;
    if (stage == STAGE_READ)
        say(r, "%.0f %% of waiting was on reading %.120s at %.0f MB/s: %s.", 100 * share, r->facts.input,
            report_speed(s), from[r->facts.input_is]);
    else if (stage == STAGE_WRITE)
        say(r, "%.0f %% of waiting was on writing %.120s at %.0f MB/s: %s.", 100 * share, r->facts.output,
            report_speed(s), to[r->facts.output_is]);
    else
        say(r, "%.0f %% of waiting was on temporary data at %.0f MB/s: name a faster disk with -T.", 100 * share,
            report_speed(s));
}

static void advise_on_memory(struct report *r)
{
    static const uint64_t KEY = 16;
    uint64_t needed = r->bytes + r->facts.records * KEY, room = needed + needed / 8 + 64 * MIB;
    if (r->stages[STAGE_SPILL_WRITE].events > 0 && room < r->facts.machine_memory)
        say(r, "%.1f GB of temporary data were needed: with -m %lluM all stays in memory.",
            (double)r->stages[STAGE_SPILL_WRITE].bytes / 1e9,
            (unsigned long long)(room / MIB / (uint64_t)r->n_threads + 1));
}

/* ---- threads ---- */

/* The value of -@ for so many threads. */
static int named(const struct report *r, int n_threads)
{
    return n_threads - r->facts.more_threads;
}

/* Names the two serial stages that take most. */
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
    int n = snprintf(text, size, "%s %.1f s", stats_stage(first)->name, took[first]);
    if (took[second] > took[first] / 10)
        snprintf(text + n, size - (size_t)n, ", %s %.1f s", stats_stage(second)->name, took[second]);
}

static void advise_on_threads(struct report *r)
{
    char what[100];
    int needed = threads_needed(r);
    if (r->serial >= SERIAL_BOUND * r->wall && r->n_threads > 1 && r->busy <= HALF_IDLE) {
        name_serial(r, what, sizeof what);
        say(r, "%.1f s of %.1f s are work of one thread (%s): more threads than %d do not help.", r->serial, r->wall,
            what, needed);
    }
    if (needed <= r->n_threads * 3 / 4 && r->idle_threads > 1)
        say(r, "%d of %d threads idle: use -@ %d.", r->idle_threads, r->n_threads, named(r, needed));
    else if (needed <= r->n_threads * 3 / 4)
        say(r, "On average %.1f of %d threads had work: use -@ %d.", r->busy * r->n_threads, r->n_threads,
            named(r, needed));
}

/* CPUs that stand idle. One thread for each core comes first. */
static void advise_on_cores(struct report *r)
{
    const struct report_facts *f = &r->facts;
    int cores = f->topology.cores > 0 && f->topology.cores < f->cpus ? f->topology.cores : f->cpus;
    double busy = report_busy_share(r);
    if (busy <= MOSTLY_BUSY || f->cpus <= r->n_threads)
        return;
    if (cores == f->cpus)
        say(r, "All threads were busy, %.0f %% of the time, and there are %d CPUs: -@ %d is faster.", 100 * busy,
            f->cpus, named(r, f->cpus));
    else if (r->n_threads < cores)
        say(r, "All threads were busy, %.0f %% of the time, and there are %d cores (%d CPUs): -@ %d is faster.",
            100 * busy, cores, f->cpus, named(r, cores));
    else
        say(r, "All threads were busy, %.0f %% of the time. Each core runs more than one thread: -@ %d may give some "
            "20 to 30 %% more.", 100 * busy, named(r, f->cpus));
}

/* Threads that the system may move. On several nodes that takes them away from their memory. If there are no more of
 * them than cores, two may get one core while another is free. */
static void advise_on_places(struct report *r)
{
    static const char set[] = "set OMP_PLACES=cores OMP_PROC_BIND=spread";
    const struct topology *t = &r->facts.topology;
    if (r->facts.bound || r->n_threads < PLACES_MATTER)
        return;
    if (t->nodes > 1 || t->sockets > 1)
        say(r, "The CPUs are on %d %s and threads may move between them: %s. Or let numactl --interleave=all spread "
            "the memory.", t->nodes > 1 ? t->nodes : t->sockets, t->nodes > 1 ? "NUMA nodes" : "sockets", set);
    else if (t->cores > 0 && t->cores < r->facts.cpus && r->n_threads <= t->cores)
        say(r, "Two threads may share a core while another is free: %s.", set);
}

static void advise_on_machine(struct report *r)
{
    const struct report_facts *f = &r->facts;
    advise_on_cores(r);
    advise_on_places(r);
    if (f->huge == 0 && f->peak_rss != REPORT_UNKNOWN && f->peak_rss > PAGES_MATTER)
        say(r, "No huge pages were given: /sys/kernel/mm/transparent_hugepage/enabled should say madvise or always.");
}

void report_advise(struct report *r)
{
    const struct report_facts *f = &r->facts;
    double deflate = r->stages[STAGE_DEFLATE].busy, all = report_work(r);
    bool times_count = have_cpus(r) && !cpus_taken(r);
    memset(r->advice, 0, sizeof r->advice);
    if (r->wall < TOO_SHORT) {                   /* other findings would be chance */
        say(r, "The input is so small that there is nothing to be advised: it took %.2f s.", r->wall);
        return;
    }
    if (!have_cpus(r))
        say(r, "%d threads share %d CPU%s: use -@ %d.", r->n_threads, f->cpus, f->cpus > 1 ? "s" : "",
            named(r, f->cpus));
    if (cpus_taken(r))
        say(r, "Work that took %.1f s by the clock got %.1f s of CPU time: other programs use the CPUs too.", all,
            f->user + f->system);
    if (times_count)
        advise_on_files(r);
    advise_on_memory(r);
    if (times_count)
        advise_on_threads(r);
    advise_on_machine(r);
    if (r->busy > MOSTLY_BUSY && deflate > DEFLATE_RULES * all)
        say(r, "%.0f %% of the work was compressing the output: -l 1 is faster and the file somewhat larger.",
            100 * deflate / all);
}
