/* SPDX-License-Identifier: MIT */
#include <math.h>
#include "base/progress.h"
#include "unit.h"

static void test_line_tells_what_is_known(void **state)
{
    (void)state;
    static const struct { struct progress_now now; const char *line; } cases[] = {
        {{"reading", 1410000, 1e9, 5, 0.456, 6.2}, "samtools sort: reading 45 %, 1.41 M records, 200 MB/s, 6 s left"},
        {{"reading", 1410000, 1e9, 5, -1, -1}, "samtools sort: reading: 1.41 M records, 200 MB/s"},
        {{"reading", 0, 0, 0, -1, -1}, "samtools sort: reading: 0.00 M records, 0 MB/s"},
        {{"writing", 1000000, 4e9, 60, 0.75, 180}, "samtools sort: writing 75 %, 1.00 M records, 67 MB/s, 3:00 min left"},
        {{"writing", 1000000, 4e9, 600, 0.02, 29400}, "samtools sort: writing 2 %, 1.00 M records, 7 MB/s, 8:10 h left"},
        {{"writing", 1000000, 1e9, 1, 1, 0}, "samtools sort: writing 99 %, 1.00 M records, 1000 MB/s, 0 s left"},
    };
    for (size_t i = 0; i < N_OF(cases); i++) {
        char line[128];
        progress_line(line, sizeof line, &cases[i].now);
        assert_string_equal(line, cases[i].line);
    }
}

/* A sort of known length, on its own clock: it reads for some seconds, then writes for some seconds. */
struct course {
    double reads, writes, guess;
};

static struct progress_work at(const struct course *c, double t)
{
    bool writing = t >= c->reads;
    return (struct progress_work){
        .read_seconds = writing ? c->reads : t, .read_share = writing ? 1 : t / c->reads, .write_guess = c->guess,
        .writing = writing, .write_seconds = writing ? t - c->reads : 0,
        .write_share = writing ? (t - c->reads) / c->writes : 0,
    };
}

static void test_time_left_is_that_of_a_phase(void **state)
{
    (void)state;
    static const struct course courses[] = {{10, 10, 10}, {10, 100, 100}, {500, 20, 20}, {10, 0.1, 0.1}};
    for (size_t i = 0; i < N_OF(courses); i++) {
        double all = courses[i].reads + courses[i].writes;
        for (double t = all / 50; t < all; t += all / 50) {
            struct progress_work w = at(&courses[i], t);
            assert_true(fabs(progress_left(&w) - (all - t)) < all / 1000);
        }
    }
}

static void test_wrong_guess_is_kept(void **state)
{
    (void)state;
    static const double factors[] = {0.1, 0.3, 0.7, 1.5, 3, 10};
    for (size_t i = 0; i < N_OF(factors); i++) {
        struct course c = {20, 60, 60 * factors[i]};
        struct progress_work early = at(&c, 21), late = at(&c, 50), last = at(&c, 79.99);
        double off = fabs(progress_left(&early) - 59) / 59;
        assert_true(off <= fabs(factors[i] - 1));
        assert_true(fabs(progress_left(&late) - 30) / 30 < fabs(factors[i] - 1) / 8);
        assert_true(progress_left(&last) < 0.02);
    }
}

/* No jump at the end of reading: the estimate is used until something has been written. */
static void test_time_left_jumps_between_the_phases(void **state)
{
    (void)state;
    struct course c = {20, 60, 30};
    struct progress_work before = at(&c, 19.999), after = at(&c, 20.001);
    assert_true(fabs(progress_left(&before) - progress_left(&after)) < 0.1);
}

static void test_unknown_length_is_guessed(void **state)
{
    (void)state;
    struct progress_work pipe = {.read_seconds = 5, .read_share = -1, .write_guess = 3}, start = {.read_share = 0};
    assert_true(progress_left(&pipe) < 0);
    assert_true(progress_left(&start) < 0);
    struct progress_work merge = {.writing = true, .read_share = -1, .write_seconds = 5, .write_share = -1};
    assert_true(progress_left(&merge) < 0);
    /* The hint was too small: it is only known that writing is still to come. */
    struct progress_work more = {.read_seconds = 5, .read_share = 1.7, .write_guess = 3};
    assert_true(fabs(progress_left(&more) - 3) < 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line_tells_what_is_known),
        cmocka_unit_test(test_time_left_is_that_of_a_phase),
        cmocka_unit_test(test_wrong_guess_is_kept),
        cmocka_unit_test(test_time_left_jumps_between_the_phases),
        cmocka_unit_test(test_unknown_length_is_guessed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
