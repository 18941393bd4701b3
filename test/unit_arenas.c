/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include <omp.h>
#include "base/latch.h"
#include "base/stats.h"
#include "sort/arenas.h"

enum { SIZE = 100 << 20, STEP = 4096 };

static void fill(struct bam_arena *arena)
{
    for (size_t at = 0; at < SIZE; at += STEP)
        arena->base[at] = 1;
}

static size_t bytes_left(const struct bam_arena *arena)
{
    size_t left = 0;
    for (size_t at = 0; at < SIZE; at += STEP)
        left += arena->base[at];
    return left;
}

static void count(void *n_called)
{
    ++*(int *)n_called;
}

/* Memory that was given back reads as zeros. */
static void test_all_memory_is_given_back_by_all_threads(void **state)
{
    (void)state;
    static const int team_sizes[] = {1, 2, 3, 8, 64};
    for (size_t i = 0; i < N_OF(team_sizes); i++) {
        struct latch latch = {0};
        int n_called = 0;
        struct arenas arenas;
        struct stats *stats = stats_new(team_sizes[i], STATS_TIMES);
        MUST(stats && arenas_open(&arenas, SIZE, &latch) == 0);
        fill(&arenas.each[0]);
        fill(&arenas.each[1]);
        #pragma omp parallel num_threads(team_sizes[i])
        #pragma omp master
        arenas_give_back(&arenas, team_sizes[i], stats, count, &n_called);
        assert_int_equal(bytes_left(&arenas.each[0]) + bytes_left(&arenas.each[1]), 0);
        assert_int_equal(n_called, 1);
        assert_int_equal(stats_total(stats, STAGE_FREE).events, team_sizes[i]);
        arenas_close(&arenas);
        stats_free(stats);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_memory_is_given_back_by_all_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
