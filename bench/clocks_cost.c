/* SPDX-License-Identifier: MIT */
/* Measures the cost of the clocks in base/clocks.c: a stage that is entered and left once.
 *
 *   make build/clocks_cost && build/clocks_cost
 *
 * Prints, for each detail, ns for a stage and for one that may block; the best of some rounds. Multiplied by the events
 * of a report's stages (JSON), that is the cost in a sort. */
#include <stdio.h>
#include "base/clocks.h"

enum { ROUNDS = 50, PAIRS = 5000 };

static double cost(struct clocks *clocks, enum stage stage)
{
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t start = clocks_wall(clocks);
        for (int i = 0; i < PAIRS; i++)
            clocks_leave(clocks, clocks_enter(clocks, stage), 1);
        double each = (double)(clocks_wall(clocks) - start) / PAIRS;
        best = each < best ? each : best;
    }
    return best;
}

int main(void)
{
    static const char *const names[] = {"always", "with --report", "with a page or --trace"};
    for (enum clocks_detail detail = CLOCKS_TIMES; detail <= CLOCKS_SPANS; detail++) {
        struct clocks *clocks = clocks_new(1, detail);
        if (!clocks)
            return 1;
        double plain = cost(clocks, STAGE_SORT), blocking = cost(clocks, STAGE_WRITE);
        printf("%-24s %6.0f ns, %6.0f ns where it may block\n", names[detail], plain, blocking);
        clocks_free(clocks);
    }
    return 0;
}
