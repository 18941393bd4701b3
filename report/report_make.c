/* SPDX-License-Identifier: MIT */
/* Computes the numbers of a report from the counts of each thread in each stage. */
#include <math.h>
#include <stdlib.h>
#include "report/report.h"

static const double IDLE_BELOW = 0.05;           /* share of the wall time: a thread with less work is hardly needed */

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

static bool works(enum stage stage)
{
    return clocks_stage(stage)->kind != STAGE_RESTS;
}

/* CPU seconds that the slot spends in a serial stage, on work that only it can do. CPU time is used so that neither a
 * slow disk nor a crowded machine looks like work. For stages that may block, CPU time was measured. For thread 0's
 * other stages it is estimated by the share of the time in which the thread had a CPU. */
static double serial_work(const struct clocks *clocks, int slot, enum stage stage)
{
    struct clocks_count c = clocks_of(clocks, slot, stage);
    if (clocks_stage(stage)->kind != STAGE_SERIAL)
        return 0;
    return seconds(c.ns - c.blocked_ns) * (slot == 0 && !clocks_stage(stage)->may_block ? clocks_ran(clocks) : 1);
}

static void find_critical(struct report *r, const struct clocks *clocks)
{
    for (int slot = 0; slot < clocks_slots(clocks); slot++) {
        double serial = 0;
        for (enum stage stage = 0; stage < N_STAGES; stage++)
            serial += serial_work(clocks, slot, stage);
        if (serial > r->serial) {
            r->serial = serial;
            r->critical = slot;
        }
    }
}

static void count_stages(struct report *r, const struct clocks *clocks)
{
    for (enum stage stage = 0; stage < N_STAGES; stage++) {
        struct clocks_count c = clocks_total(clocks, stage);
        r->stages[stage] = (struct report_stage){
            .busy = seconds(c.ns), .blocked = seconds(c.blocked_ns),
            .critical = seconds(clocks_of(clocks, r->critical, stage).ns),
            .any_thread = seconds(clocks_any_thread(clocks, stage)),
            .bytes = c.bytes, .events = c.events, .records = c.records};
        r->serial_stages[stage] = serial_work(clocks, r->critical, stage);
        if (clocks_stage(stage)->kind == STAGE_IN_TURN)
            r->in_turn += seconds(c.ns - c.blocked_ns);
    }
}

static void count_shares(struct report *r, const struct clocks *clocks)
{
    double all = 0, io = 0, team = 0;
    for (enum stage stage = 0; stage < N_STAGES; stage++) {
        all += works(stage) ? r->stages[stage].busy : 0;
        io += report_is_io(stage) ? r->stages[stage].busy : 0;
    }
    for (int i = 0; i < r->n_threads; i++) {
        double busy = 0;
        for (enum stage stage = 0; stage < N_STAGES; stage++)
            busy += works(stage) ? seconds(clocks_of(clocks, i, stage).ns) : 0;
        team += busy;
        r->idle_threads += busy < IDLE_BELOW * r->wall;
    }
    r->busy = r->wall > 0 ? team / (r->wall * r->n_threads) : 0;
    r->io = all > 0 ? io / all : 0;
}

void report_add_spans(const struct clocks *clocks, int slot, double ns, double (*share)[N_STAGES], int cells)
{
    struct clocks_span span;
    for (size_t at = 0; clocks_next_span(clocks, slot, &at, &span);) {
        double from = (double)span.start / ns, end = (double)span.end / ns;
        for (int i = (int)from; i < cells && i < end; i++)
            share[i][span.stage] += fmin(end, i + 1) - fmax(from, i);
    }
}

/* Sets any_thread of stages in which threads were not counted one by one, from the spans if there are any. A cell of
 * the time is full if the threads' parts of it add up to its length. */
static void measure_presence(struct report *r, const struct clocks *clocks)
{
    enum { CELLS = 1 << 14 };
    double (*share)[N_STAGES] = r->wall > 0 ? calloc(CELLS, sizeof *share) : NULL;
    for (int slot = 0; share && slot < clocks_slots(clocks); slot++)
        report_add_spans(clocks, slot, r->wall * 1e9 / CELLS, share, CELLS);
    for (enum stage stage = 0; share && stage < N_STAGES; stage++) {
        double cells = 0;
        for (int i = 0; i < CELLS; i++)
            cells += fmin(share[i][stage], 1);
        if (works(stage) && r->stages[stage].any_thread <= 0)
            r->stages[stage].any_thread = cells * r->wall / CELLS;
    }
    free(share);
}

static void measure_memory(struct report *r, const struct clocks *clocks)
{
    const struct curve_point *points;
    size_t n = clocks_curve(clocks, &points);
    double mean = curve_mean_rss(points, n);
    r->mean_rss = mean > 0 ? (uint64_t)mean : REPORT_UNKNOWN;
}

void report_make(struct report *r, const struct report_facts *facts, const struct clocks *clocks)
{
    *r = (struct report){.facts = *facts, .n_threads = clocks_threads(clocks), .wall = seconds(clocks_wall(clocks))};
    find_critical(r, clocks);
    clocks_name(clocks, r->critical, r->critical_name);
    count_stages(r, clocks);
    count_shares(r, clocks);
    measure_presence(r, clocks);
    measure_memory(r, clocks);
    r->bytes = clocks_input_bytes(r->stages[STAGE_INFLATE].bytes, r->stages[STAGE_FIND].bytes);
    report_judge(r);
    report_advise(r);
}
