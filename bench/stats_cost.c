/* SPDX-License-Identifier: MIT */
/* Measures the cost of the clocks in stats.c: a stage that is entered and left once.
 *
 *   make build/stats_cost && build/stats_cost
 *
 * Prints, for each detail, ns for a stage and for one that may block; the best of some rounds. Multiplied by the events
 * of a report's stages (JSON), that is the cost in a sort. */
#include <stdio.h>
#include "base/stats.h"

enum { ROUNDS = 50, PAIRS = 5000 };

static double cost(struct stats *stats, enum stage stage)
{
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t start = stats_wall(stats);
        for (int i = 0; i < PAIRS; i++)
            stats_leave(stats, stats_enter(stats, stage), 1);
        double each = (double)(stats_wall(stats) - start) / PAIRS;
        best = each < best ? each : best;
    }
    return best;
}

int main(void)
{
    static const char *const names[] = {"always", "with --report", "with a page or --trace"};
    for (enum stats_detail detail = STATS_TIMES; detail <= STATS_SPANS; detail++) {
        struct stats *stats = stats_new(1, detail);
        if (!stats)
            return 1;
        double plain = cost(stats, STAGE_SORT), blocking = cost(stats, STAGE_WRITE);
        printf("%-24s %6.0f ns, %6.0f ns where it may block\n", names[detail], plain, blocking);
        stats_free(stats);
    }
    return 0;
}
