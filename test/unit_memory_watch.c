/* SPDX-License-Identifier: MIT */
#include "base/memory_watch.h"
#include "unit.h"

enum { THERE = 8000, MOST = 32000 };

/* Bytes in use when it warns of a sort of `bytes` bytes, each block one byte; 0: it does not. */
static uint64_t warns_at(uint64_t bytes, uint64_t most, uint64_t surely, bool foreseen)
{
    struct memory_watch w;
    memory_watch_start(&w, THERE, most, surely);
    for (uint64_t taken = 1; taken <= bytes && taken <= most; taken++)
        if (memory_watch_due(&w, taken) && memory_watch_look(&w, taken, foreseen ? (double)bytes : 0)) {
            assert_false(memory_watch_due(&w, most));   /* once */
            return taken;
        }
    return 0;
}

static void test_little_data_is_warned_of(void **state)
{
    (void)state;
    assert_int_equal(warns_at(4, MOST, 1, true), 0);
    assert_int_equal(warns_at(4, MOST, 0, false), 0);
    assert_int_equal(warns_at(THERE, MOST, THERE, true), 0);
    assert_int_equal(warns_at(THERE / 2, MOST, 0, false), 0);
}

static void test_data_that_do_not_fit_are_warned_of_late(void **state)
{
    (void)state;
    uint64_t at = warns_at(THERE + 1, MOST, 0, true);
    assert_true(at > 0 && at <= THERE / 32);
    at = warns_at(MOST * 2, MOST, 0, false);
    assert_true(at >= THERE / 2 && at <= THERE * 4 / 5);
}

/* It warns before anything is read. */
static void test_large_files_are_warned_of_late(void **state)
{
    (void)state;
    struct memory_watch w;
    memory_watch_start(&w, THERE, MOST, THERE + 1);
    assert_true(w.next == UINT64_MAX);
    assert_int_equal(warns_at(MOST, MOST, THERE + 1, true), 0);
}

/* Such data go to disk, so it does not warn. */
static void test_data_beyond_the_limit_are_warned_of(void **state)
{
    (void)state;
    assert_int_equal(warns_at(MOST, THERE, MOST, true), 0);
    assert_int_equal(warns_at(MOST, THERE, 0, false), 0);
}

/* The estimate was too small, which is known by then. */
static void test_estimate_is_believed_for_ever(void **state)
{
    (void)state;
    struct memory_watch w;
    memory_watch_start(&w, THERE, MOST, 0);
    assert_false(memory_watch_look(&w, THERE / 2, THERE / 2));
    assert_true(memory_watch_look(&w, THERE * 3 / 4, THERE * 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_little_data_is_warned_of),
        cmocka_unit_test(test_data_that_do_not_fit_are_warned_of_late),
        cmocka_unit_test(test_large_files_are_warned_of_late),
        cmocka_unit_test(test_data_beyond_the_limit_are_warned_of),
        cmocka_unit_test(test_estimate_is_believed_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
