/* SPDX-License-Identifier: MIT */
/* Computes the numbers of a report from the counts of each thread in each stage. */
#include <math.h>
#include <stdlib.h>
#include "report/report.h"

static const double IDLE_BELOW = 0.05;           /* of the wall time: a thread with less work is hardly needed */

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

static bool works(enum stage stage)
{
    return stats_stage(stage)->kind != STAGE_RESTS;
}

/* CPU seconds that the slot spends in a serial stage, on work that only it can do. CPU time is used so that neither a
 * slow disk nor a crowded machine looks like work. For stages that may block, CPU time was measured. For thread 0's
 * other stages it is estimated by the share of the time in which the thread had a CPU. */
static double serial_work(const struct stats *stats, int slot, enum stage stage)
{
    struct stats_count c = stats_of(stats, slot, stage);
    if (stats_stage(stage)->kind != STAGE_SERIAL)
        return 0;
    return seconds(c.ns - c.blocked_ns) * (slot == 0 && !stats_stage(stage)->may_block ? stats_ran(stats) : 1);
}

static void find_critical(struct report *r, const struct stats *stats)
{
    for (int slot = 0; slot < stats_slots(stats); slot++) {
        double serial = 0;
        for (enum stage stage = 0; stage < N_STAGES; stage++)
            serial += serial_work(stats, slot, stage);
        if (serial > r->serial) {
            r->serial = serial;
            r->critical = slot;
        }
    }
}

static void count_stages(struct report *r, const struct stats *stats)
{
    for (enum stage stage = 0; stage < N_STAGES; stage++) {
        struct stats_count c = stats_total(stats, stage);
        r->stages[stage] = (struct report_stage){
            .busy = seconds(c.ns), .blocked = seconds(c.blocked_ns),
            .critical = seconds(stats_of(stats, r->critical, stage).ns),
            .any_thread = seconds(stats_any_thread(stats, stage)),
            .bytes = c.bytes, .events = c.events, .records = c.records};
        r->serial_stages[stage] = serial_work(stats, r->critical, stage);
        if (stats_stage(stage)->kind == STAGE_IN_TURN)
            r->in_turn += seconds(c.ns - c.blocked_ns);
    }
}

static void count_shares(struct report *r, const struct stats *stats)
{
    double all = 0, io = 0, team = 0;
    for (enum stage stage = 0; stage < N_STAGES; stage++) {
        all += works(stage) ? r->stages[stage].busy : 0;
        io += report_is_io(stage) ? r->stages[stage].busy : 0;
    }
    for (int i = 0; i < r->n_threads; i++) {
        double busy = 0;
        for (enum stage stage = 0; stage < N_STAGES; stage++)
            busy += works(stage) ? seconds(stats_of(stats, i, stage).ns) : 0;
        team += busy;
        r->idle_threads += busy < IDLE_BELOW * r->wall;
    }
    r->busy = r->wall > 0 ? team / (r->wall * r->n_threads) : 0;
    r->io = all > 0 ? io / all : 0;
}

void report_add_spans(const struct stats *stats, int slot, double ns, double (*share)[N_STAGES], int cells)
{
    struct stats_span span;
    for (size_t at = 0; stats_next_span(stats, slot, &at, &span);) {
        double from = (double)span.start / ns, end = (double)span.end / ns;
        for (int i = (int)from; i < cells && i < end; i++)
            share[i][span.stage] += fmin(end, i + 1) - fmax(from, i);
    }
}

/* Sets any_thread of stages in which threads were not counted one by one, from the spans if there are any. A cell of
 * the time is full if the threads' parts of it add up to its length. */
static void measure_presence(struct report *r, const struct stats *stats)
{
    enum { CELLS = 1 << 14 };
    double (*share)[N_STAGES] = r->wall > 0 ? calloc(CELLS, sizeof *share) : NULL;
    for (int slot = 0; share && slot < stats_slots(stats); slot++)
        report_add_spans(stats, slot, r->wall * 1e9 / CELLS, share, CELLS);
    for (enum stage stage = 0; share && stage < N_STAGES; stage++) {
        double cells = 0;
        for (int i = 0; i < CELLS; i++)
            cells += fmin(share[i][stage], 1);
        if (works(stage) && r->stages[stage].any_thread <= 0)
            r->stages[stage].any_thread = cells * r->wall / CELLS;
    }
    free(share);
}

static void measure_memory(struct report *r, const struct stats *stats)
{
    const struct curve_point *points;
    size_t n = stats_curve(stats, &points);
    double mean = curve_mean_rss(points, n);
    r->mean_rss = mean > 0 ? (uint64_t)mean : REPORT_UNKNOWN;
}

void report_make(struct report *r, const struct report_facts *facts, const struct stats *stats)
{
    *r = (struct report){.facts = *facts, .n_threads = stats_threads(stats), .wall = seconds(stats_wall(stats))};
    find_critical(r, stats);
    stats_name(stats, r->critical, r->critical_name);
    count_stages(r, stats);
    count_shares(r, stats);
    measure_presence(r, stats);
    measure_memory(r, stats);
    r->bytes = stats_input_bytes(r->stages[STAGE_INFLATE].bytes, r->stages[STAGE_FIND].bytes);
    report_judge(r);
    report_advise(r);
}
