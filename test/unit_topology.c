/* SPDX-License-Identifier: MIT */
#include "unit_root.h"
#include "base/topology.h"

/* Makes a file below /sys/devices/system. */
static void put(const char *name, const char *text)
{
    char path[200];
    snprintf(path, sizeof path, "/sys/devices/system/%s", name);
    unit_root_put(path, text);
}

static void put_cpu(int cpu, const char *name, const char *text)
{
    char path[100];
    snprintf(path, sizeof path, "cpu/cpu%d/topology/%s", cpu, name);
    put(path, text);
}

/* Two sockets of 4 cores, of two nodes each. CPUs 8 to 15 are the cores' second ones. */
static void put_server(const char *siblings)
{
    static const char *const near[] = {"0-1,8-9\n", "2-3,10-11\n", "4-5,12-13\n", "6-7,14-15\n"};
    char text[64];
    for (int cpu = 0; cpu < 16; cpu++) {
        snprintf(text, sizeof text, "%d,%d\n", cpu % 8, cpu % 8 + 8);
        put_cpu(cpu, siblings, text);
        snprintf(text, sizeof text, "%d\n", cpu % 8 / 4);
        put_cpu(cpu, "physical_package_id", text);
    }
    put("node/online", "0-3,7\n");
    for (int node = 0; node < 4; node++) {
        snprintf(text, sizeof text, "node/node%d/cpulist", node);
        put(text, near[node]);
    }
    put("node/node7/cpulist", "\n");             /* memory only */
}

/* The CPUs as a bit mask. */
static void check(uint64_t cpus, int cores, int sockets, int nodes)
{
    struct affinity mask = {.known = true};
    for (int cpu = 0; cpu < 64; cpu++)
        if (cpus >> cpu & 1)
            affinity_add(&mask, cpu);
    struct topology t = topology_of(unit_root, &mask);
    assert_int_equal(t.cores, cores);
    assert_int_equal(t.sockets, sockets);
    assert_int_equal(t.nodes, nodes);
}

static void test_what_is_not_told_is_made_up(void **state)
{
    (void)state;
    check(0xff, 0, 0, 0);
    put_cpu(0, "core_cpus_list", "junk\n");
    put_cpu(0, "physical_package_id", "-1\n");
    put_cpu(1, "core_cpus_list", "");
    put("node/online", "-\n");
    check(0xff, 0, 0, 0);
    put_cpu(1, "core_cpus_list", "0-99999\n");
    put("node/online", "99999\n");
    check(0xff, 1, 0, 0);
}

static void test_second_threads_are_cores(void **state)
{
    (void)state;
    put_server("core_cpus_list");
    check(0xffff, 8, 2, 4);
    check(0x00ff, 8, 2, 4);                      /* one CPU of each core */
    check(0xff00, 8, 2, 4);
}

static void test_cpus_that_may_not_be_used_count(void **state)
{
    (void)state;
    put_server("core_cpus_list");
    check(0x0f0f, 4, 1, 2);
    check(0x0101, 1, 1, 1);
    check(0x0011, 2, 2, 2);
    check(0, 0, 0, 0);
    check((uint64_t)3 << 40, 0, 0, 0);           /* there are none */
}

static void test_older_linux_has_no_cores(void **state)
{
    (void)state;
    put_server("thread_siblings_list");
    check(0xffff, 8, 2, 4);
}

static void test_last_cpu_is_lost(void **state)
{
    (void)state;
    struct affinity mask = {.known = true};
    affinity_add(&mask, AFFINITY_CPUS - 1);
    put_cpu(AFFINITY_CPUS - 1, "core_cpus_list", "8190-8191\n");
    put_cpu(AFFINITY_CPUS - 1, "physical_package_id", "8191\n");
    struct topology t = topology_of(unit_root, &mask);
    assert_true(affinity_count(&mask) == 1 && t.cores == 1 && t.sockets == 1 && t.nodes == 0);
}

/* Cores 0 to 7 have two CPUs each, 8 apart; sockets have cores 0 to 3 and 4 to 7. */
static void check_sockets(uint64_t cpus, int most, int n, int first, int second)
{
    struct affinity mask = {.known = true};
    int cores[2] = {0};
    for (int cpu = 0; cpu < 64; cpu++)
        if (cpus >> cpu & 1)
            affinity_add(&mask, cpu);
    assert_int_equal(topology_socket_cores(unit_root, &mask, cores, most), n);
    assert_int_equal(cores[0], first);
    assert_int_equal(cores[1], second);
}

static void test_cores_are_those_of_the_other_socket(void **state)
{
    (void)state;
    check_sockets(0xffff, 2, 0, 0, 0);           /* nothing is known */
    put_server("core_cpus_list");
    check_sockets(0xffff, 2, 2, 4, 4);
    check_sockets(0xffff, 1, 1, 4, 0);
    check_sockets(0x0130, 2, 2, 1, 2);           /* CPUs 4, 5, 8 */
    check_sockets(0x1010, 2, 1, 1, 0);           /* two of one core of the second socket */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_ROOT_TEST(test_what_is_not_told_is_made_up),
        UNIT_ROOT_TEST(test_second_threads_are_cores),
        UNIT_ROOT_TEST(test_cpus_that_may_not_be_used_count),
        UNIT_ROOT_TEST(test_older_linux_has_no_cores),
        UNIT_ROOT_TEST(test_last_cpu_is_lost),
        UNIT_ROOT_TEST(test_cores_are_those_of_the_other_socket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
