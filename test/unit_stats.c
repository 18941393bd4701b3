/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include <omp.h>
#include <pthread.h>
#include <time.h>
#include "base/stats.h"

static void sleep_ms(int ms)
{
    nanosleep(&(struct timespec){0, ms * 1000000}, NULL);
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void spin_ms(int ms)
{
    for (uint64_t end = now_ns() + (uint64_t)ms * 1000000; now_ns() < end;)
        ;
}

static uint64_t sum_of_slot(const struct stats *s, int slot)
{
    uint64_t sum = 0;
    for (enum stage stage = 0; stage < N_STAGES; stage++)
        sum += stats_of(s, slot, stage).ns;
    return sum;
}

static void test_no_stats_count_nothing(void **state)
{
    (void)state;
    stats_leave(NULL, stats_enter(NULL, STAGE_READ), 7);
    stats_records(NULL, 7);
    stats_phase(NULL, PHASE_READ);
    stats_stop(NULL);
    stats_free(NULL);
    assert_int_equal(stats_join(NULL, "reader"), -1);
    stats_leave_as(NULL, -1, stats_enter_as(NULL, -1, STAGE_READ), 7);
}

/* Threads come and go; time without any thread is not counted, nor is time of work that cannot block. */
static void test_time_of_any_thread_is_the_sum_of_all(void **state)
{
    (void)state;
    enum { MS = 20 };
    struct stats *s = stats_new(1, STATS_CPU), *times = stats_new(1, STATS_TIMES);
    int a = stats_join(s, "a"), b = stats_join(s, "b");
    stats_enter_as(s, a, STAGE_WRITE);
    sleep_ms(MS);
    stats_enter_as(s, b, STAGE_WRITE);
    sleep_ms(MS);
    stats_leave_as(s, a, STAGE_IDLE, 1);
    sleep_ms(MS);
    stats_leave_as(s, b, STAGE_IDLE, 1);
    sleep_ms(MS);
    stats_enter_as(s, a, STAGE_READ);
    sleep_ms(MS);                                /* until the end */
    stats_leave(times, stats_enter(times, STAGE_READ), 1);
    stats_stop(s);
    stats_stop(times);
    uint64_t write = stats_any_thread(s, STAGE_WRITE), read = stats_any_thread(s, STAGE_READ);
    assert_true(write >= 3 * MS * 1000000 && write <= stats_total(s, STAGE_WRITE).ns - MS * 1000000);
    assert_true(read == stats_total(s, STAGE_READ).ns && write + read <= stats_wall(s) - MS * 1000000);
    assert_int_equal(stats_any_thread(s, STAGE_OTHER) + stats_any_thread(s, STAGE_IDLE), 0);
    assert_int_equal(stats_any_thread(times, STAGE_READ), 0);
    stats_free(times);
    stats_free(s);
}

static void test_stages_have_distinct_names(void **state)
{
    (void)state;
    for (enum stage a = 0; a < N_STAGES; a++) {
        assert_non_null(stats_stage(a)->name);
        assert_non_null(stats_stage(a)->what);
        for (enum stage b = 0; b < a; b++)
            assert_string_not_equal(stats_stage(a)->name, stats_stage(b)->name);
    }
}

static void test_inner_stage_stops_the_outer_clock(void **state)
{
    (void)state;
    enum { MS = 20 };
    struct stats *s = stats_new(1, STATS_CPU);
    enum stage outer = stats_enter(s, STAGE_SORT);
    assert_int_equal(outer, STAGE_OTHER);
    enum stage inner = stats_enter(s, STAGE_MERGE);
    assert_int_equal(inner, STAGE_SORT);
    sleep_ms(MS);
    stats_records(s, 3);
    stats_leave(s, inner, 100);
    stats_leave(s, outer, 10);
    stats_stop(s);
    struct stats_count merge = stats_of(s, 0, STAGE_MERGE), sort = stats_of(s, 0, STAGE_SORT);
    assert_true(merge.ns >= MS * 1000000);
    assert_true(sort.ns + merge.ns <= stats_wall(s));
    assert_int_equal(merge.bytes, 100);
    assert_int_equal(merge.events, 1);
    assert_int_equal(merge.records, 3);
    assert_int_equal(sort.bytes, 10);
    assert_int_equal(sort.records, 0);
    stats_free(s);
}

static void test_times_of_a_slot_add_up_to_the_wall_time(void **state)
{
    (void)state;
    enum { N_THREADS = 4, BLOCKS = 1000 };
    struct stats *s = stats_new(N_THREADS, STATS_CPU);
    #pragma omp parallel num_threads(N_THREADS)
    for (int i = 0; i < BLOCKS; i++) {
        enum stage before = stats_enter(s, i % 2 ? STAGE_INFLATE : STAGE_DEFLATE);
        stats_leave(s, before, 5);
    }
    stats_stop(s);
    for (int i = 0; i < N_THREADS; i++) {
        assert_int_equal(sum_of_slot(s, i), stats_wall(s));
        assert_int_equal(stats_of(s, i, STAGE_INFLATE).bytes, 5 * BLOCKS / 2);
    }
    assert_int_equal(stats_total(s, STAGE_DEFLATE).bytes, N_THREADS * 5 * BLOCKS / 2);
    assert_int_equal(stats_total(s, STAGE_DEFLATE).events, N_THREADS * BLOCKS / 2);
    assert_int_equal(stats_total(s, STAGE_OTHER).ns, stats_of(s, 0, STAGE_OTHER).ns);   /* nobody else's */
    stats_free(s);
}

static void test_time_asleep_in_a_read_is_told_from_work(void **state)
{
    (void)state;
    enum { MS = 30 };
    struct stats *s = stats_new(1, STATS_CPU);
    enum stage before = stats_enter(s, STAGE_READ);
    sleep_ms(MS);
    stats_leave(s, before, 1);
    before = stats_enter(s, STAGE_WRITE);
    spin_ms(MS);
    stats_leave(s, before, 1);
    struct stats_count asleep = stats_of(s, 0, STAGE_READ), awake = stats_of(s, 0, STAGE_WRITE);
    assert_true(asleep.blocked_ns >= MS * 900000 && asleep.blocked_ns <= asleep.ns);
    assert_true(awake.blocked_ns < awake.ns);
    stats_free(s);
}

static void test_cpu_time_is_taken_only_on_demand(void **state)
{
    (void)state;
    struct stats *s = stats_new(1, STATS_TIMES);
    enum stage before = stats_enter(s, STAGE_READ);
    sleep_ms(2);
    stats_leave(s, before, 1);
    assert_true(stats_of(s, 0, STAGE_READ).ns >= 2000000);
    assert_int_equal(stats_of(s, 0, STAGE_READ).blocked_ns, 0);
    stats_free(s);
}

/* ---- threads beside the team ---- */

static void *work_beside(void *arg)
{
    struct stats *s = arg;
    int slot = stats_join(s, "reader");
    stats_leave_as(s, slot, stats_enter_as(s, slot, STAGE_READ), 50);
    return NULL;
}

static void test_thread_beside_the_team_has_its_own_slot(void **state)
{
    (void)state;
    pthread_t thread;
    struct stats *s = stats_new(2, STATS_CPU);
    assert_int_equal(stats_slots(s), 2);
    MUST(pthread_create(&thread, NULL, work_beside, s) == 0);
    pthread_join(thread, NULL);
    stats_stop(s);
    assert_int_equal(stats_slots(s), 3);
    char name[STATS_NAME_SIZE];
    assert_string_equal(stats_name(s, 2, name), "reader");
    assert_string_equal(stats_name(s, 1, name), "thread 1");
    assert_int_equal(stats_of(s, 2, STAGE_READ).bytes, 50);
    assert_int_equal(stats_of(s, 0, STAGE_READ).bytes, 0);
    assert_int_equal(sum_of_slot(s, 2), stats_wall(s));
    stats_free(s);
}

static void test_threads_beyond_the_slots_are_not_counted(void **state)
{
    (void)state;
    struct stats *s = stats_new(1, STATS_SPANS);
    for (int i = 0; i < 100; i++)
        work_beside(s);
    assert_int_equal(stats_join(s, "late"), -1);
    assert_int_equal(stats_total(s, STAGE_READ).events, (uint64_t)stats_slots(s) - 1);
    stats_free(s);
}

/* ---- spans ---- */

/* They follow each other without gaps, and their times equal the counters', to within `off`. */
static size_t check_spans(const struct stats *s, int slot, uint64_t off)
{
    uint64_t took[N_STAGES] = {0}, end = 0;
    struct stats_span span;
    size_t at = 0;
    while (stats_next_span(s, slot, &at, &span)) {
        assert_int_equal(span.start, end);
        assert_true(span.end >= span.start);
        assert_in_range(span.stage, 0, N_STAGES - 1);
        took[span.stage] += span.end - span.start;
        end = span.end;
    }
    assert_int_equal(end, stats_wall(s));
    for (enum stage stage = 0; stage < N_STAGES; stage++) {
        uint64_t counted = stats_of(s, slot, stage).ns;
        assert_in_range(took[stage], counted > off ? counted - off : 0, counted + off);
    }
    return at;
}

static void test_spans_are_what_happened(void **state)
{
    (void)state;
    static const enum stage order[] = {STAGE_OTHER, STAGE_READ, STAGE_INFLATE, STAGE_READ, STAGE_OTHER,
                                       STAGE_SORT, STAGE_OTHER};
    struct stats *s = stats_new(1, STATS_SPANS);
    struct stats_span span;
    size_t at = 0;
    enum stage outer = stats_enter(s, STAGE_READ);
    stats_leave(s, stats_enter(s, STAGE_INFLATE), 1);
    stats_leave(s, outer, 1);
    stats_leave(s, stats_enter(s, STAGE_SORT), 1);
    stats_stop(s);
    assert_int_equal(check_spans(s, 0, 0), N_OF(order));
    for (size_t i = 0; i < N_OF(order); i++) {
        assert_true(stats_next_span(s, 0, &at, &span));
        assert_int_equal(span.stage, order[i]);
    }
    stats_free(s);
}

static void test_long_runs_keep_their_shares_in_bounded_memory(void **state)
{
    (void)state;
    enum { BLOCKS = 200000, MOST = 1 << 15 };
    struct stats *s = stats_new(1, STATS_SPANS);
    for (int i = 0; i < BLOCKS; i++) {
        enum stage before = stats_enter(s, STAGE_SORT);
        if (i % 3 == 0)
            stats_leave(s, stats_enter(s, STAGE_MERGE), 1);
        stats_leave(s, before, 1);
    }
    stats_stop(s);
    size_t n = check_spans(s, 0, stats_wall(s) / 100);
    assert_in_range(n, MOST / 64, MOST);         /* cells of equal time: many stay empty on a busy machine */
    stats_free(s);
}

static void test_without_trace_there_are_no_spans(void **state)
{
    (void)state;
    struct stats *s = stats_new(1, STATS_CPU);
    struct stats_span span;
    size_t at = 0;
    stats_leave(s, stats_enter(s, STAGE_SORT), 1);
    stats_stop(s);
    assert_false(stats_next_span(s, 0, &at, &span));
    assert_true(stats_memory(1, STATS_SPANS) > stats_memory(1, STATS_CPU));
    stats_free(s);
}

/* ---- phases and the end ---- */

static void test_phases_begin_when_told(void **state)
{
    (void)state;
    uint64_t open, read, write, end, last;
    struct stats *s = stats_new(1, STATS_CPU);
    stats_phase(s, PHASE_OPEN);
    stats_phase(s, PHASE_READ);
    sleep_ms(2);
    stats_phase(s, PHASE_WRITE);
    stats_stop(s);
    assert_true(stats_phase_times(s, PHASE_OPEN, &open, &end));
    assert_true(stats_phase_times(s, PHASE_READ, &read, &last));
    assert_int_equal(end, read);
    assert_true(last >= read + 2000000);
    assert_true(stats_phase_times(s, PHASE_WRITE, &write, &end));
    assert_int_equal(write, last);
    assert_int_equal(end, stats_wall(s));
    assert_false(stats_phase_times(s, PHASE_FINISH, &write, &end));
    stats_free(s);
}

static void test_stopped_clocks_stand_still(void **state)
{
    (void)state;
    struct stats *s = stats_new(2, STATS_SPANS);
    stats_stop(s);
    uint64_t wall = stats_wall(s), idle = stats_of(s, 1, STAGE_IDLE).ns;
    sleep_ms(2);
    stats_stop(s);
    assert_int_equal(stats_wall(s), wall);
    assert_int_equal(stats_of(s, 1, STAGE_IDLE).ns, idle);
    check_spans(s, 1, 0);
    stats_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_stats_count_nothing),
        cmocka_unit_test(test_time_of_any_thread_is_the_sum_of_all),
        cmocka_unit_test(test_stages_have_distinct_names),
        cmocka_unit_test(test_inner_stage_stops_the_outer_clock),
        cmocka_unit_test(test_times_of_a_slot_add_up_to_the_wall_time),
        cmocka_unit_test(test_time_asleep_in_a_read_is_told_from_work),
        cmocka_unit_test(test_cpu_time_is_taken_only_on_demand),
        cmocka_unit_test(test_thread_beside_the_team_has_its_own_slot),
        cmocka_unit_test(test_threads_beyond_the_slots_are_not_counted),
        cmocka_unit_test(test_spans_are_what_happened),
        cmocka_unit_test(test_long_runs_keep_their_shares_in_bounded_memory),
        cmocka_unit_test(test_without_trace_there_are_no_spans),
        cmocka_unit_test(test_phases_begin_when_told),
        cmocka_unit_test(test_stopped_clocks_stand_still),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
