/* SPDX-License-Identifier: MIT */
#include "unit_root.h"
#include <limits.h>
#include "report/report_host.h"
#include "report/report_place.h"

static void test_cpu_that_is_not_told_is_made_up(void **state)
{
    (void)state;
    struct report_host h = report_host_of(unit_root);
    char text[64] = "junk";
    assert_string_equal(h.cpu, "");
    assert_int_equal(h.n_sockets, 0);
    assert_string_equal(report_host_cores(&h, text, sizeof text), "");
    unit_root_put("/proc/cpuinfo", "processor\t: 0\nBogoMIPS\t: 50.00\n");   /* Arm */
    assert_string_equal(report_host_of(unit_root).cpu, "");
}

static void test_cpu_is_another_model(void **state)
{
    (void)state;
    unit_root_put("/proc/cpuinfo", "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Xeon(R) Gold 6148 CPU @ 2.40GHz\nmodel name\t: x\n");
    struct report_host h = report_host_of(unit_root);
    assert_string_equal(h.cpu, "Xeon(R) Gold 6148 CPU @ 2.40GHz");
    assert_int_equal(strlen(h.date), strlen("2026-01-02T03:04:05Z"));
    assert_true(*h.htslib && *h.libdeflate && *h.code);
}

static void test_cores_of_many_sockets_run_over_the_text(void **state)
{
    (void)state;
    struct report_host h = {.n_sockets = 3, .socket_cores = {32, 32, 16}};
    char text[64];
    assert_string_equal(report_host_cores(&h, text, sizeof text), "32 + 32 + 16");
    assert_string_equal(report_host_cores(&h, text, 6), "32 + ");
}

/* The test's folder is below /tmp or the like; the mounts are made up. */
static void check(const char *mounts, const char *file_system)
{
    char path[300], real[PATH_MAX], text[4 * PATH_MAX];
    unit_root_put("/with space/file", "12345");
    snprintf(path, sizeof path, "%s/with space/file", unit_root);
    MUST(realpath(unit_root, real));
    snprintf(text, sizeof text, mounts, real, real, real);
    unit_root_put("/proc/self/mountinfo", text);
    struct report_place place = report_place_of(unit_root, path, -1);
    assert_string_equal(place.file_system, file_system);
    assert_int_equal(place.bytes, 5);
}

static void test_file_system_is_that_of_another_folder(void **state)
{
    (void)state;
    check("", "");
    check("22 1 8:1 / / rw shared:1 - ext4 /dev/root rw\n", "ext4");
    check("22 1 8:1 / / rw - ext4 /dev/root rw\n23 22 0:5 / %s rw - lustre mds@tcp:/x rw\n", "lustre");
    check("23 22 0:5 / %s rw - lustre mds@tcp:/x rw\n22 1 8:1 / / rw - ext4 /dev/root rw\n", "lustre");
    check("22 1 8:1 / / rw - ext4 a rw\n23 22 0:5 / %s/with rw - xfs a rw\n", "ext4");       /* half of its name */
    check("22 1 8:1 / / rw - ext4 a rw\n23 22 0:5 / %s/with\\040space rw master:2 - nfs4 a rw\n", "nfs4");
    check("22 1 8:1 / / rw - ext4 a rw\n23 22 0:5 / %s rw - xfs a rw\n24 23 0:6 / %s rw - tmpfs a rw\n", "tmpfs");
    check("junk\n22 1 8:1 / / rw - \n - \n22 1 8:1 / / rw ext4\n", "");
}

static void test_size_of_what_is_no_file_is_told(void **state)
{
    (void)state;
    assert_true(report_place_of("", "/dev/null", -1).bytes == UINT64_MAX);
    assert_true(report_place_of("", unit_root, -1).bytes == UINT64_MAX);
    assert_true(report_place_of("", "/not/there", -1).bytes == UINT64_MAX);
    assert_true(report_place_of("", "-", -1).bytes == UINT64_MAX);
    int ends[2];
    MUST(pipe(ends) == 0);
    struct report_place place = report_place_of("", "-", ends[0]);
    assert_true(place.bytes == UINT64_MAX && !*place.file_system);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_ROOT_TEST(test_cpu_that_is_not_told_is_made_up),
        UNIT_ROOT_TEST(test_cpu_is_another_model),
        UNIT_ROOT_TEST(test_cores_of_many_sockets_run_over_the_text),
        UNIT_ROOT_TEST(test_file_system_is_that_of_another_folder),
        UNIT_ROOT_TEST(test_size_of_what_is_no_file_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
