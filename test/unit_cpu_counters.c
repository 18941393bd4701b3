/* SPDX-License-Identifier: MIT */
#include "unit_root.h"
#include <errno.h>
#include "base/cpu_counters.h"
#include "base/package_energy.h"

/* ---- cycles ---- */

static uint64_t numbers[N_CPU_COUNTERS][3];      /* count, wanted, counted */

static int made_up(int counter)
{
    int fd = unit_temp_file();
    unit_write(fd, numbers[counter], sizeof numbers[counter]);
    MUST(lseek(fd, 0, SEEK_SET) == 0);
    return fd;
}

static void test_counts_are_not_those_of_the_cpu(void **state)
{
    (void)state;
    struct cpu_counters c;
    memcpy(numbers, (uint64_t[N_CPU_COUNTERS][3]){{1000, 50, 50}, {3000, 100, 25}}, sizeof numbers);
    cpu_counters_begin(&c, made_up);
    assert_int_equal(c.error, 0);
    assert_int_equal(cpu_counters_get(&c, CPU_CYCLES), 1000);
    assert_int_equal(cpu_counters_get(&c, CPU_INSTRUCTIONS), 12000);   /* it counted a quarter of the time */
    cpu_counters_end(&c);
    assert_true(cpu_counters_get(&c, CPU_CYCLES) == CPU_COUNT_UNKNOWN);
}

static void test_counter_that_never_counted_is_taken_for_0(void **state)
{
    (void)state;
    struct cpu_counters c;
    memcpy(numbers, (uint64_t[N_CPU_COUNTERS][3]){{0, 50, 0}, {5, 50, 50}}, sizeof numbers);
    cpu_counters_begin(&c, made_up);
    assert_true(cpu_counters_get(&c, CPU_CYCLES) == CPU_COUNT_UNKNOWN);
    assert_non_null(strstr(cpu_counters_why(&c), "in use"));
    cpu_counters_end(&c);
}

static int refused_with;

static int refused(int counter)
{
    (void)counter;
    errno = refused_with;
    return -1;
}

static void test_reason_for_no_counts_is_another(void **state)
{
    (void)state;
    const struct { int error; const char *why; } cases[] = {
        {EACCES, "perf_event_paranoid"}, {EPERM, "perf_event_paranoid"}, {ENOENT, "virtual"}, {EOPNOTSUPP, "virtual"},
        {ENOSYS, "perf_event_open"}, {EMFILE, "refused"}};
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct cpu_counters c;
        refused_with = cases[i].error;
        cpu_counters_begin(&c, refused);
        assert_true(cpu_counters_get(&c, CPU_INSTRUCTIONS) == CPU_COUNT_UNKNOWN);
        assert_non_null(strstr(cpu_counters_why(&c), cases[i].why));
        cpu_counters_end(&c);
    }
}

/* Of this very machine, if it counts: work that was done is there. */
static void test_counters_of_the_machine_stand_still(void **state)
{
    (void)state;
    struct cpu_counters c;
    volatile uint64_t sum = 0;
    cpu_counters_begin(&c, cpu_counter_open);
    uint64_t before = cpu_counters_get(&c, CPU_INSTRUCTIONS);
    for (uint64_t i = 0; i < 1000000; i++)
        sum = sum + i;
    uint64_t after = cpu_counters_get(&c, CPU_INSTRUCTIONS);
    int error = c.error;
    cpu_counters_end(&c);
    if (error || before == CPU_COUNT_UNKNOWN || after == CPU_COUNT_UNKNOWN)
        skip();
    assert_true(sum > 0 && after >= before + 1000000);
}

/* ---- energy ---- */

static void put_domain(int domain, const char *name, const char *energy, const char *range)
{
    char path[100];
    const char *const files[] = {"name", "energy_uj", "max_energy_range_uj"}, *const texts[] = {name, energy, range};
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "/sys/class/powercap/intel-rapl:%d/%s", domain, files[i]);
        unit_root_put(path, texts[i]);
    }
}

static void test_energy_of_two_packages_is_not_their_sum(void **state)
{
    (void)state;
    struct package_energy e;
    put_domain(0, "package-0\n", "1000000\n", "262143328850\n");
    put_domain(1, "psys\n", "5000000\n", "262143328850\n");
    put_domain(2, "package-1\n", "262143000000\n", "262143328850\n");
    package_energy_begin(&e, unit_root);
    assert_int_equal(e.n, 2);
    put_domain(0, "package-0\n", "4500000\n", "262143328850\n");
    put_domain(1, "psys\n", "9000000\n", "262143328850\n");
    put_domain(2, "package-1\n", "671150\n", "262143328850\n");       /* began anew after 0.32885 J */
    double joules = package_energy_joules(&e, unit_root, 10);
    assert_true(joules > 4.4999 && joules < 4.5001);
}

static void test_long_run_is_told_too_little_energy(void **state)
{
    (void)state;
    struct package_energy e;
    put_domain(0, "package-0\n", "1\n", "262143328850\n");
    package_energy_begin(&e, unit_root);
    assert_true(package_energy_joules(&e, unit_root, 500) >= 0);
    assert_true(package_energy_joules(&e, unit_root, 600) < 0);
    assert_non_null(strstr(package_energy_why(&e), "anew"));
}

static void test_machine_without_rapl_is_told_energy(void **state)
{
    (void)state;
    struct package_energy e;
    package_energy_begin(&e, unit_root);
    assert_true(package_energy_joules(&e, unit_root, 1) < 0);
    assert_non_null(strstr(package_energy_why(&e), "does not tell"));
}

static void test_counter_that_is_no_number_counts(void **state)
{
    (void)state;
    struct package_energy e;
    put_domain(0, "package-0\n", "none\n", "262143328850\n");
    package_energy_begin(&e, unit_root);
    assert_true(package_energy_joules(&e, unit_root, 1) < 0);
    assert_non_null(strstr(package_energy_why(&e), "cannot be read"));
    e.error = EACCES;                            /* as if we were not root */
    assert_non_null(strstr(package_energy_why(&e), "only root"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_are_not_those_of_the_cpu),
        cmocka_unit_test(test_counter_that_never_counted_is_taken_for_0),
        cmocka_unit_test(test_reason_for_no_counts_is_another),
        cmocka_unit_test(test_counters_of_the_machine_stand_still),
        UNIT_ROOT_TEST(test_energy_of_two_packages_is_not_their_sum),
        UNIT_ROOT_TEST(test_long_run_is_told_too_little_energy),
        UNIT_ROOT_TEST(test_machine_without_rapl_is_told_energy),
        UNIT_ROOT_TEST(test_counter_that_is_no_number_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
