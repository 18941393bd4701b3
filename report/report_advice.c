/* SPDX-License-Identifier: MIT */
/* What the numbers of a report mean for its reader: a list of possible
 * findings, the most important first. */
#include <math.h>
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
static const uint64_t HUGE_MATTERS = (uint64_t)1 << 30, MIB = (uint64_t)1 << 20;

/* Writes a sentence, and returns true, if the finding holds. */
typedef bool advice_fn(const struct report *r, char *text);

#define SAY(...) (snprintf(text, REPORT_ADVICE_SIZE, __VA_ARGS__), true)

static double work(const struct report *r)
{
    double sum = 0;
    for (enum stage stage = 0; stage < N_STAGES; stage++)
        sum += stats_stage(stage)->kind == STAGE_RESTS ? 0 : r->stages[stage].busy - r->stages[stage].blocked;
    return sum;
}

/* Threads that share a CPU look busy while they wait for it, so their times say little. */
static bool have_cpus(const struct report *r)
{
    return r->facts.cpus == 0 || r->n_threads <= r->facts.cpus;
}

/* The times also say little if other programs have the CPUs. */
static bool cpus_taken(const struct report *r)
{
    return !r->facts.by_htslib && have_cpus(r) && r->facts.user + r->facts.system < CPU_TAKEN * work(r);
}

/* The number of threads that would have been enough. */
static int threads_needed(const struct report *r)
{
    int needed = (int)ceil(r->busy * r->n_threads * MARGIN);
    return needed < 1 ? 1 : needed < r->n_threads ? needed : r->n_threads;
}

static bool too_short(const struct report *r, char *text)
{
    return r->wall < TOO_SHORT
        && SAY("The input is so small that there is nothing to be advised: it took %.2f s.", r->wall);
}

static bool more_threads_than_cpus(const struct report *r, char *text)
{
    const struct report_facts *f = &r->facts;
    return !have_cpus(r)
        && SAY("%d threads share %d CPU%s: use -@ %d.", r->n_threads, f->cpus, f->cpus > 1 ? "s" : "", f->cpus);
}

static bool cpus_were_taken(const struct report *r, char *text)
{
    return cpus_taken(r)
        && SAY("Work that took %.1f s by the clock got %.1f s of CPU time: other programs use the CPUs too.",
               work(r), r->facts.user + r->facts.system);
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

static bool waited_for_files(const struct report *r, char *text)
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
    if (s->blocked < MUCH_WAITING * r->wall || !have_cpus(r) || cpus_taken(r))
        return false;
    if (stage == STAGE_READ)
        return SAY("%.0f %% of waiting was on reading %.120s at %.0f MB/s: %s.", 100 * share, r->facts.input,
                   report_speed(s), from[r->facts.input_is]);
    if (stage == STAGE_WRITE)
        return SAY("%.0f %% of waiting was on writing %.120s at %.0f MB/s: %s.", 100 * share, r->facts.output,
                   report_speed(s), to[r->facts.output_is]);
    return SAY("%.0f %% of waiting was on temporary data at %.0f MB/s: name a faster disk with -T.", 100 * share,
               report_speed(s));
}

static bool memory_would_do(const struct report *r, char *text)
{
    static const uint64_t KEY = 16;
    uint64_t needed = r->bytes + r->facts.records * KEY, room = needed + needed / 8 + 64 * MIB;
    return r->stages[STAGE_SPILL_WRITE].events > 0 && room < r->facts.machine_memory
        && SAY("%.1f GB of temporary data were needed: with -m %lluM all stays in memory.",
               (double)r->stages[STAGE_SPILL_WRITE].bytes / 1e9,
               (unsigned long long)(room / MIB / (uint64_t)r->n_threads + 1));
}

/* ---- threads ---- */

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

static bool one_thread_bounds(const struct report *r, char *text)
{
    char what[100];
    if (r->serial < SERIAL_BOUND * r->wall || r->n_threads < 2 || r->busy > HALF_IDLE || !have_cpus(r) || cpus_taken(r))
        return false;
    name_serial(r, what, sizeof what);
    return SAY("%.1f s of %.1f s are work of one thread (%s): more threads than %d do not help.", r->serial, r->wall,
               what, threads_needed(r));
}

static bool threads_were_idle(const struct report *r, char *text)
{
    int needed = threads_needed(r);
    if (needed > r->n_threads * 3 / 4 || !have_cpus(r) || cpus_taken(r))
        return false;
    if (r->idle_threads > 1)
        return SAY("%d of %d threads idle: use -@ %d.", r->idle_threads, r->n_threads, needed);
    return SAY("On average %.1f of %d threads had work: use -@ %d.", r->busy * r->n_threads, r->n_threads, needed);
}

static bool more_cpus_are_there(const struct report *r, char *text)
{
    return r->busy > MOSTLY_BUSY && r->facts.cpus > r->n_threads
        && SAY("All threads were busy, %.0f %% of the time, and there are %d CPUs: -@ %d is faster.", 100 * r->busy,
               r->facts.cpus, r->facts.cpus);
}

static bool threads_have_no_places(const struct report *r, char *text)
{
    return r->facts.numa_nodes > 1 && !r->facts.bound && r->n_threads >= PLACES_MATTER
        && SAY("The machine has %d memory nodes and threads may move between them: set OMP_PLACES=cores.",
               r->facts.numa_nodes);
}

static bool no_huge_pages(const struct report *r, char *text)
{
    return r->facts.huge == 0 && r->facts.peak_rss != REPORT_UNKNOWN && r->facts.peak_rss > HUGE_MATTERS
        && SAY("No huge pages were given: /sys/kernel/mm/transparent_hugepage/enabled should say madvise or always.");
}

static bool deflating_rules(const struct report *r, char *text)
{
    double deflate = r->stages[STAGE_DEFLATE].busy, all = work(r);
    return r->busy > MOSTLY_BUSY && deflate > DEFLATE_RULES * all
        && SAY("%.0f %% of the work was compressing the output: -l 1 is faster and the file somewhat larger.",
               100 * deflate / all);
}

void report_advise(struct report *r)
{
    static advice_fn *const all[] = {
        too_short, more_threads_than_cpus, cpus_were_taken, waited_for_files, memory_would_do, one_thread_bounds,
        threads_were_idle, more_cpus_are_there, threads_have_no_places, no_huge_pages, deflating_rules,
    };
    int said = 0;
    memset(r->advice, 0, sizeof r->advice);
    for (size_t i = 0; i < sizeof all / sizeof *all && said < REPORT_ADVICE_MAX; i++) {
        said += all[i](r, r->advice[said]);
        if (all[i] == too_short && said > 0)
            return;                              /* other findings would be chance */
    }
}
