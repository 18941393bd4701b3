/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include <omp.h>
#include <pthread.h>
#include <time.h>
#include "base/clocks.h"

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

static uint64_t sum_of_slot(const struct clocks *s, int slot)
{
    uint64_t sum = 0;
    for (enum stage stage = 0; stage < N_STAGES; stage++)
        sum += clocks_of(s, slot, stage).ns;
    return sum;
}

static void test_no_stats_count_nothing(void **state)
{
    (void)state;
    clocks_leave(NULL, clocks_enter(NULL, STAGE_READ), 7);
    clocks_records(NULL, 7);
    clocks_phase(NULL, PHASE_READ);
    clocks_stop(NULL);
    clocks_free(NULL);
    assert_int_equal(clocks_join(NULL, "reader"), -1);
    clocks_leave_as(NULL, -1, clocks_enter_as(NULL, -1, STAGE_READ), 7);
}

/* Threads come and go; time without any thread is not counted, nor is time of work that cannot block. */
static void test_time_of_any_thread_is_the_sum_of_all(void **state)
{
    (void)state;
    enum { MS = 20 };
    struct clocks *s = clocks_new(1, CLOCKS_CPU), *times = clocks_new(1, CLOCKS_TIMES);
    int a = clocks_join(s, "a"), b = clocks_join(s, "b");
    clocks_enter_as(s, a, STAGE_WRITE);
    sleep_ms(MS);
    clocks_enter_as(s, b, STAGE_WRITE);
    sleep_ms(MS);
    clocks_leave_as(s, a, STAGE_IDLE, 1);
    sleep_ms(MS);
    clocks_leave_as(s, b, STAGE_IDLE, 1);
    sleep_ms(MS);
    clocks_enter_as(s, a, STAGE_READ);
    sleep_ms(MS);                                /* until the end */
    clocks_leave(times, clocks_enter(times, STAGE_READ), 1);
    clocks_stop(s);
    clocks_stop(times);
    uint64_t write = clocks_any_thread(s, STAGE_WRITE), read = clocks_any_thread(s, STAGE_READ);
    assert_true(write >= 3 * MS * 1000000 && write <= clocks_total(s, STAGE_WRITE).ns - MS * 1000000);
    assert_true(read == clocks_total(s, STAGE_READ).ns && write + read <= clocks_wall(s) - MS * 1000000);
    assert_int_equal(clocks_any_thread(s, STAGE_OTHER) + clocks_any_thread(s, STAGE_IDLE), 0);
    assert_int_equal(clocks_any_thread(times, STAGE_READ), 0);
    clocks_free(times);
    clocks_free(s);
}

static void test_stages_have_distinct_names(void **state)
{
    (void)state;
    for (enum stage a = 0; a < N_STAGES; a++) {
        assert_non_null(clocks_stage(a)->name);
        assert_non_null(clocks_stage(a)->what);
        for (enum stage b = 0; b < a; b++)
            assert_string_not_equal(clocks_stage(a)->name, clocks_stage(b)->name);
    }
}

static void test_inner_stage_stops_the_outer_clock(void **state)
{
    (void)state;
    enum { MS = 20 };
    struct clocks *s = clocks_new(1, CLOCKS_CPU);
    enum stage outer = clocks_enter(s, STAGE_SORT);
    assert_int_equal(outer, STAGE_OTHER);
    enum stage inner = clocks_enter(s, STAGE_MERGE);
    assert_int_equal(inner, STAGE_SORT);
    sleep_ms(MS);
    clocks_records(s, 3);
    clocks_leave(s, inner, 100);
    clocks_leave(s, outer, 10);
    clocks_stop(s);
    struct clocks_count merge = clocks_of(s, 0, STAGE_MERGE), sort = clocks_of(s, 0, STAGE_SORT);
    assert_true(merge.ns >= MS * 1000000);
    assert_true(sort.ns + merge.ns <= clocks_wall(s));
    assert_int_equal(merge.bytes, 100);
    assert_int_equal(merge.events, 1);
    assert_int_equal(merge.records, 3);
    assert_int_equal(sort.bytes, 10);
    assert_int_equal(sort.records, 0);
    clocks_free(s);
}

static void test_times_of_a_slot_add_up_to_the_wall_time(void **state)
{
    (void)state;
    enum { N_THREADS = 4, BLOCKS = 1000 };
    struct clocks *s = clocks_new(N_THREADS, CLOCKS_CPU);
    #pragma omp parallel num_threads(N_THREADS)
    for (int i = 0; i < BLOCKS; i++) {
        enum stage before = clocks_enter(s, i % 2 ? STAGE_INFLATE : STAGE_DEFLATE);
        clocks_leave(s, before, 5);
    }
    clocks_stop(s);
    for (int i = 0; i < N_THREADS; i++) {
        assert_int_equal(sum_of_slot(s, i), clocks_wall(s));
        assert_int_equal(clocks_of(s, i, STAGE_INFLATE).bytes, 5 * BLOCKS / 2);
    }
    assert_int_equal(clocks_total(s, STAGE_DEFLATE).bytes, N_THREADS * 5 * BLOCKS / 2);
    assert_int_equal(clocks_total(s, STAGE_DEFLATE).events, N_THREADS * BLOCKS / 2);
    assert_int_equal(clocks_total(s, STAGE_OTHER).ns, clocks_of(s, 0, STAGE_OTHER).ns); /* no other slot has any */
    clocks_free(s);
}

static void test_time_asleep_in_a_read_is_told_from_work(void **state)
{
    (void)state;
    enum { MS = 30 };
    struct clocks *s = clocks_new(1, CLOCKS_CPU);
    enum stage before = clocks_enter(s, STAGE_READ);
    sleep_ms(MS);
    clocks_leave(s, before, 1);
    before = clocks_enter(s, STAGE_WRITE);
    spin_ms(MS);
    clocks_leave(s, before, 1);
    struct clocks_count asleep = clocks_of(s, 0, STAGE_READ), awake = clocks_of(s, 0, STAGE_WRITE);
    assert_true(asleep.blocked_ns >= MS * 900000 && asleep.blocked_ns <= asleep.ns);
    assert_true(awake.blocked_ns < awake.ns);
    clocks_free(s);
}

static void test_cpu_time_is_taken_only_on_demand(void **state)
{
    (void)state;
    struct clocks *s = clocks_new(1, CLOCKS_TIMES);
    enum stage before = clocks_enter(s, STAGE_READ);
    sleep_ms(2);
    clocks_leave(s, before, 1);
    assert_true(clocks_of(s, 0, STAGE_READ).ns >= 2000000);
    assert_int_equal(clocks_of(s, 0, STAGE_READ).blocked_ns, 0);
    clocks_free(s);
}

/* ---- threads beside the team ---- */

static void *work_beside(void *arg)
{
    struct clocks *s = arg;
    int slot = clocks_join(s, "reader");
    clocks_leave_as(s, slot, clocks_enter_as(s, slot, STAGE_READ), 50);
    return NULL;
}

static void test_thread_beside_the_team_has_its_own_slot(void **state)
{
    (void)state;
    pthread_t thread;
    struct clocks *s = clocks_new(2, CLOCKS_CPU);
    assert_int_equal(clocks_slots(s), 2);
    MUST(pthread_create(&thread, NULL, work_beside, s) == 0);
    pthread_join(thread, NULL);
    clocks_stop(s);
    assert_int_equal(clocks_slots(s), 3);
    char name[CLOCKS_NAME_SIZE];
    assert_string_equal(clocks_name(s, 2, name), "reader");
    assert_string_equal(clocks_name(s, 1, name), "thread 1");
    assert_int_equal(clocks_of(s, 2, STAGE_READ).bytes, 50);
    assert_int_equal(clocks_of(s, 0, STAGE_READ).bytes, 0);
    assert_int_equal(sum_of_slot(s, 2), clocks_wall(s));
    clocks_free(s);
}

static void test_threads_beyond_the_slots_are_not_counted(void **state)
{
    (void)state;
    struct clocks *s = clocks_new(1, CLOCKS_SPANS);
    for (int i = 0; i < 100; i++)
        work_beside(s);
    assert_int_equal(clocks_join(s, "late"), -1);
    assert_int_equal(clocks_total(s, STAGE_READ).events, (uint64_t)clocks_slots(s) - 1);
    clocks_free(s);
}

/* ---- spans ---- */

/* They follow each other without gaps, and their times equal the counters', to within `off`. */
static size_t check_spans(const struct clocks *s, int slot, uint64_t off)
{
    uint64_t took[N_STAGES] = {0}, end = 0;
    struct clocks_span span;
    size_t at = 0;
    while (clocks_next_span(s, slot, &at, &span)) {
        assert_int_equal(span.start, end);
        assert_true(span.end >= span.start);
        assert_in_range(span.stage, 0, N_STAGES - 1);
        took[span.stage] += span.end - span.start;
        end = span.end;
    }
    assert_int_equal(end, clocks_wall(s));
    for (enum stage stage = 0; stage < N_STAGES; stage++) {
        uint64_t counted = clocks_of(s, slot, stage).ns;
        assert_in_range(took[stage], counted > off ? counted - off : 0, counted + off);
    }
    return at;
}

static void test_spans_are_what_happened(void **state)
{
    (void)state;
    static const enum stage order[] = {STAGE_OTHER, STAGE_READ, STAGE_INFLATE, STAGE_READ, STAGE_OTHER,
                                       STAGE_SORT, STAGE_OTHER};
    struct clocks *s = clocks_new(1, CLOCKS_SPANS);
    struct clocks_span span;
    size_t at = 0;
    enum stage outer = clocks_enter(s, STAGE_READ);
    clocks_leave(s, clocks_enter(s, STAGE_INFLATE), 1);
    clocks_leave(s, outer, 1);
    clocks_leave(s, clocks_enter(s, STAGE_SORT), 1);
    clocks_stop(s);
    assert_int_equal(check_spans(s, 0, 0), N_OF(order));
    for (size_t i = 0; i < N_OF(order); i++) {
        assert_true(clocks_next_span(s, 0, &at, &span));
        assert_int_equal(span.stage, order[i]);
    }
    clocks_free(s);
}

static void test_long_runs_keep_their_shares_in_bounded_memory(void **state)
{
    (void)state;
    enum { BLOCKS = 200000, MOST = 1 << 15 };
    struct clocks *s = clocks_new(1, CLOCKS_SPANS);
    for (int i = 0; i < BLOCKS; i++) {
        enum stage before = clocks_enter(s, STAGE_SORT);
        if (i % 3 == 0)
            clocks_leave(s, clocks_enter(s, STAGE_MERGE), 1);
        clocks_leave(s, before, 1);
    }
    clocks_stop(s);
    size_t n = check_spans(s, 0, clocks_wall(s) / 100);
    assert_in_range(n, MOST / 64, MOST);         /* cells of equal time: many stay empty on a busy machine */
    clocks_free(s);
}

static void test_without_trace_there_are_no_spans(void **state)
{
    (void)state;
    struct clocks *s = clocks_new(1, CLOCKS_CPU);
    struct clocks_span span;
    size_t at = 0;
    clocks_leave(s, clocks_enter(s, STAGE_SORT), 1);
    clocks_stop(s);
    assert_false(clocks_next_span(s, 0, &at, &span));
    assert_true(clocks_memory(1, CLOCKS_SPANS) > clocks_memory(1, CLOCKS_CPU));
    clocks_free(s);
}

/* ---- phases and the end ---- */

static void test_phases_begin_when_told(void **state)
{
    (void)state;
    uint64_t open, read, write, end, last;
    struct clocks *s = clocks_new(1, CLOCKS_CPU);
    clocks_phase(s, PHASE_OPEN);
    clocks_phase(s, PHASE_READ);
    sleep_ms(2);
    clocks_phase(s, PHASE_WRITE);
    clocks_stop(s);
    assert_true(clocks_phase_times(s, PHASE_OPEN, &open, &end));
    assert_true(clocks_phase_times(s, PHASE_READ, &read, &last));
    assert_int_equal(end, read);
    assert_true(last >= read + 2000000);
    assert_true(clocks_phase_times(s, PHASE_WRITE, &write, &end));
    assert_int_equal(write, last);
    assert_int_equal(end, clocks_wall(s));
    assert_false(clocks_phase_times(s, PHASE_FINISH, &write, &end));
    clocks_free(s);
}

static void test_stopped_clocks_stand_still(void **state)
{
    (void)state;
    struct clocks *s = clocks_new(2, CLOCKS_SPANS);
    clocks_stop(s);
    uint64_t wall = clocks_wall(s), idle = clocks_of(s, 1, STAGE_IDLE).ns;
    sleep_ms(2);
    clocks_stop(s);
    assert_int_equal(clocks_wall(s), wall);
    assert_int_equal(clocks_of(s, 1, STAGE_IDLE).ns, idle);
    check_spans(s, 1, 0);
    clocks_free(s);
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
