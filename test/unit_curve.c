/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include <omp.h>
#include "base/curve.h"

static void check_order(const struct curve *c)
{
    for (size_t i = 1; i < c->n; i++) {
        assert_true(c->points[i].ns > c->points[i - 1].ns);
        assert_true(c->points[i].cpu_ns >= c->points[i - 1].cpu_ns);
        assert_int_equal(c->points[i].read, c->points[i].ns * 2);
    }
}

static void test_points_outgrow_their_memory(void **state)
{
    (void)state;
    struct curve *c = curve_new();
    uint64_t ns = 0, taken = 0, step = 1000000;
    for (; ns < 100000 * step; ns += step)
        if (curve_due(c, ns)) {
            curve_add(c, ns, 2 * ns, ns);
            taken++;
        }
    assert_in_range(c->n, CURVE_POINTS / 2, CURVE_POINTS);
    assert_true(taken < 2 * CURVE_POINTS + 2000);
    assert_int_equal(c->points[0].ns, 0);
    assert_true(c->points[c->n - 1].ns > ns - 2 * c->every);     /* all of the time is there ... */
    for (size_t i = 2; i < c->n; i++)                            /* ... evenly */
        assert_true(c->points[i].ns - c->points[i - 1].ns <= c->every);
    check_order(c);
    curve_free(c);
}

static void test_threads_spoil_each_others_points(void **state)
{
    (void)state;
    struct curve *c = curve_new();
    _Atomic uint64_t clock = 1;
    #pragma omp parallel num_threads(4)
    for (int i = 0; i < 5000; i++) {
        uint64_t ns = atomic_fetch_add(&clock, 100000);
        if (curve_due(c, ns))
            curve_add(c, ns, 2 * ns, 0);
    }
    assert_true(c->n > 10);
    check_order(c);
    curve_free(c);
}

static void test_memory_is_not_that_of_the_process(void **state)
{
    (void)state;
    enum { MIB = 1 << 20, SIZE = 64 * MIB };
    struct curve *c = curve_new();
    curve_add(c, 1, 2, 0);
    if (c->points[0].rss == 0)
        skip();                                  /* no /proc */
    volatile char *memory = malloc(SIZE);
    MUST(memory);
    for (size_t i = 0; i < SIZE; i += 4096)
        memory[i] = 1;
    curve_add(c, 2, 4, 0);
    assert_in_range(c->points[1].rss - c->points[0].rss, SIZE / 2, 2 * SIZE);
    free((void *)memory);
    curve_free(c);
}

static void test_mean_does_not_count_time(void **state)
{
    (void)state;
    const struct curve_point points[] = {{.ns = 0, .rss = 10}, {.ns = 10, .rss = 10}, {.ns = 12, .rss = 70}, {.ns = 20, .rss = 70}};
    assert_true(curve_mean_rss(points, 4) == (100 + 80 + 560) / 20.0);
    assert_true(curve_mean_rss(points, 1) == 10);
    assert_true(curve_mean_rss(points, 0) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_points_outgrow_their_memory),
        cmocka_unit_test(test_threads_spoil_each_others_points),
        cmocka_unit_test(test_memory_is_not_that_of_the_process),
        cmocka_unit_test(test_mean_does_not_count_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
