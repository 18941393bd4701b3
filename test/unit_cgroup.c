/* SPDX-License-Identifier: MIT */
#include "unit_root.h"
#include "base/cgroup.h"

static void check_memory(uint64_t limit)
{
    assert_true(cgroup_memory(unit_root) == limit);
}

static void check_cpus(uint64_t limit)
{
    assert_true(cgroup_cpus(unit_root) == limit);
}

static void test_machine_without_groups_has_limits(void **state)
{
    (void)state;
    check_memory(UINT64_MAX);
    check_cpus(UINT64_MAX);
    unit_root_put("/proc/self/cgroup", "");
    check_memory(UINT64_MAX);
    unit_root_put("/proc/self/cgroup", "0::/\n4:memory:/\n2:cpu,cpuacct:/\n");
    check_memory(UINT64_MAX);
    check_cpus(UINT64_MAX);
    unit_root_put("/proc/self/cgroup", "junk\n:\n4:memory\n\n");
    check_memory(UINT64_MAX);
}

/* SLURM sets the job's own limit, and those above it. */
static void test_limit_of_a_job_in_version_1_is_not_seen(void **state)
{
    (void)state;
    unit_root_put("/proc/self/cgroup", "9:name=systemd:/\n4:memory:/slurm/uid_7/job_9/step_0\n3:cpuacct,cpu:/slurm/uid_7\n0::/\n");
    unit_root_put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    unit_root_put("/sys/fs/cgroup/memory/slurm/uid_7/job_9/step_0/memory.limit_in_bytes", "5000000\n");
    unit_root_put("/sys/fs/cgroup/memory/slurm/uid_7/job_8/memory.limit_in_bytes", "1000\n");
    unit_root_put("/sys/fs/cgroup/cpu/slurm/uid_7/cpu.cfs_quota_us", "250000\n");
    unit_root_put("/sys/fs/cgroup/cpu/slurm/uid_7/cpu.cfs_period_us", "100000\n");
    check_memory(5000000);
    check_cpus(2);
    unit_root_put("/sys/fs/cgroup/memory/slurm/uid_7/job_9/memory.limit_in_bytes", "4000000\n");
    check_memory(4000000);
    unit_root_put("/sys/fs/cgroup/memory/slurm/uid_7/memory.limit_in_bytes", "3000000\n");
    check_memory(3000000);
    unit_root_put("/sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "2000000\n");
    check_memory(2000000);
    unit_root_put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1500000\n");
    check_memory(1500000);
    unit_root_put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    unit_root_put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    check_cpus(2);
    unit_root_put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "30000\n");
    check_cpus(1);
}

static void test_limit_in_version_2_is_not_seen(void **state)
{
    (void)state;
    unit_root_put("/proc/self/cgroup", "0::/system.slice/job:9/a\n");
    unit_root_put("/sys/fs/cgroup/system.slice/job:9/a/memory.max", "max\n");
    unit_root_put("/sys/fs/cgroup/system.slice/job:9/a/cpu.max", "max 100000\n");
    check_memory(UINT64_MAX);
    check_cpus(UINT64_MAX);
    unit_root_put("/sys/fs/cgroup/system.slice/job:9/memory.max", "7000000\n");
    unit_root_put("/sys/fs/cgroup/system.slice/job:9/cpu.max", "800000 100000\n");
    check_memory(7000000);
    check_cpus(8);
    unit_root_put("/sys/fs/cgroup/system.slice/memory.max", "6000000\n");
    unit_root_put("/sys/fs/cgroup/system.slice/cpu.max", "50000 100000\n");
    check_memory(6000000);
    check_cpus(1);
}

/* Its path is the host's, but its own group is mounted. */
static void test_limit_of_a_container_is_not_seen(void **state)
{
    (void)state;
    unit_root_put("/proc/self/cgroup", "5:memory:/docker/0123\n4:cpu,cpuacct:/docker/0123\n");
    unit_root_put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "123000\n");
    unit_root_put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000\n");
    unit_root_put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    check_memory(123000);
    check_cpus(3);
    unit_root_put("/proc/self/cgroup", "0::/kubepods/pod7\n");
    unit_root_put("/sys/fs/cgroup/memory.max", "456000\n");
    check_memory(456000);
}

static void test_controller_with_a_similar_name_is_taken(void **state)
{
    (void)state;
    unit_root_put("/proc/self/cgroup", "5:memory2,mem:/a\n4:cpuset,cpuacct:/a\n1:name=memory:/a\n");
    unit_root_put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "123000\n");
    unit_root_put("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "300000\n");
    unit_root_put("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
    check_memory(UINT64_MAX);
    check_cpus(UINT64_MAX);
}

static void test_odd_numbers_are_limits(void **state)
{
    (void)state;
    unit_root_put("/proc/self/cgroup", "0::/\n");
    for (const char *const *text = (const char *const[]){"", "-1\n", "x\n", "max\n", NULL}; *text; text++) {
        unit_root_put("/sys/fs/cgroup/memory.max", *text);
        check_memory(UINT64_MAX);
    }
    for (const char *const *text = (const char *const[]){"", "1000\n", "0 100\n", "100 0\n", "-1 100\n", NULL}; *text; text++) {
        unit_root_put("/sys/fs/cgroup/cpu.max", *text);
        check_cpus(UINT64_MAX);
    }
    unit_root_put("/sys/fs/cgroup/memory.max", "0\n");
    check_memory(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_ROOT_TEST(test_machine_without_groups_has_limits),
        UNIT_ROOT_TEST(test_limit_of_a_job_in_version_1_is_not_seen),
        UNIT_ROOT_TEST(test_limit_in_version_2_is_not_seen),
        UNIT_ROOT_TEST(test_limit_of_a_container_is_not_seen),
        UNIT_ROOT_TEST(test_controller_with_a_similar_name_is_taken),
        UNIT_ROOT_TEST(test_odd_numbers_are_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
