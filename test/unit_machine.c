/* SPDX-License-Identifier: MIT */
#include "unit_root.h"
#include <sys/resource.h>
#include "base/machine.h"
#include "engine/engine_opts.h"
#include "engine/limits.h"

static void test_threads_that_can_be_had_are_not_found(void **state)
{
    (void)state;
    assert_int_equal(machine_threads(0), 0);
    assert_int_equal(machine_threads(-3), 0);
    for (int n = 1; n < 40; n += 13)
        assert_int_equal(machine_threads(n), n);
}

/* It runs under a limit on addresses, of which every thread's stack uses some. */
static void test_threads_that_cannot_be_had_are_promised(void **state)
{
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip();                                      /* it needs address space without limit */
#endif
    enum { MANY = 400, ROOM = 200 << 20 };
    struct rlimit old, low;
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file)
        skip();
    int found = fscanf(file, "%lu", &pages);
    fclose(file);
    assert_int_equal(found, 1);
    getrlimit(RLIMIT_AS, &old);
    low = (struct rlimit){pages * (rlim_t)sysconf(_SC_PAGESIZE) + ROOM, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &low), 0);
    int n = machine_threads(MANY), again = machine_threads(MANY);
    setrlimit(RLIMIT_AS, &old);
    assert_in_range(n, 1, MANY - 1);
    assert_in_range(again, n / 2, MANY - 1);     /* the threads of the trial have ended */
    assert_int_equal(machine_threads(MANY), MANY);
}

static void test_address_space_has_no_limit_or_none_is_left(void **state)
{
    (void)state;
    struct rlimit old, low;
    getrlimit(RLIMIT_AS, &old);
    if (old.rlim_cur != RLIM_INFINITY)
        skip();
    assert_true(machine_address_space() == UINT64_MAX);
    low = (struct rlimit){(rlim_t)1 << 46, old.rlim_max};
    setrlimit(RLIMIT_AS, &low);
    uint64_t left = machine_address_space();
    setrlimit(RLIMIT_AS, &old);
    assert_true(left < (uint64_t)1 << 46);
}

/* Under a limit on addresses, the stacks of threads and 128 MiB are left free; the plan's 64 MiB are among these. */
static void test_limit_on_addresses_leaves_another_memory(void **state)
{
    (void)state;
    const uint64_t MIB = 1 << 20;
    struct rlimit old, low;
    getrlimit(RLIMIT_AS, &old);
    if (old.rlim_cur != RLIM_INFINITY)
        skip();
    low = (struct rlimit){(rlim_t)1 << 46, old.rlim_max};
    setrlimit(RLIMIT_AS, &low);
    uint64_t left = machine_address_space(), memory = limits_memory(UINT64_MAX / 2, 0, 2);
    setrlimit(RLIMIT_AS, &old);
    uint64_t free_for_others = (2 * 9 + 128 - 64) * MIB;
    assert_in_range(memory, left - free_for_others - MIB, left - free_for_others + MIB);
}

static void test_time_in_the_run_queue_is_made_up(void **state)
{
    (void)state;
    assert_true(machine_run_queue(unit_root) == UINT64_MAX);
    unit_root_put("/proc/self/task/7/schedstat", "0 0 0\n");    /* a kernel that does not count */
    assert_true(machine_run_queue(unit_root) == UINT64_MAX);
    unit_root_put("/proc/self/task/7/schedstat", "5000 300 2\n");
    unit_root_put("/proc/self/task/8/schedstat", "1 20 2\n");
    unit_root_put("/proc/self/task/9/schedstat", "junk\n");
    assert_true(machine_run_queue(unit_root) == 320);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_that_can_be_had_are_not_found),
        cmocka_unit_test(test_threads_that_cannot_be_had_are_promised),
        cmocka_unit_test(test_address_space_has_no_limit_or_none_is_left),
        cmocka_unit_test(test_limit_on_addresses_leaves_another_memory),
        UNIT_ROOT_TEST(test_time_in_the_run_queue_is_made_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
