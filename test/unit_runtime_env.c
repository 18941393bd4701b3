/* SPDX-License-Identifier: MIT */
#include <string.h>
#include "unit.h"
#include "base/runtime_env.h"

static struct affinity cpus_0_2_and_9(void)
{
    struct affinity mask = {.known = true};
    affinity_add(&mask, 0);
    affinity_add(&mask, 2);
    affinity_add(&mask, 9);
    return mask;
}

/* usable: NULL: the list is unchanged. */
static void check_list(const char *list, const char *usable)
{
    struct affinity mask = cpus_0_2_and_9();
    char *found = runtime_env_usable_cpus(list, &mask);
    if (usable)
        assert_string_equal(found, usable);
    else
        assert_null(found);
    free(found);
}

static void test_cpu_of_another_job_stays_in_the_list(void **state)
{
    (void)state;
    check_list("0", NULL);
    check_list("9,2 0", NULL);
    check_list(" 0-9:9 2 ", NULL);
    check_list("0-63", "0 2 9");
    check_list("9 8 0-2", "9 0 2");
    check_list("8-20:1,0", "9 0");
    check_list("0-1000000000000", "0 2 9");
    check_list("99999999999999999999 2", "2");
    check_list("1 3-8", "");
    struct affinity unknown = {0};
    assert_null(runtime_env_usable_cpus("0-63", &unknown));
}

/* libomp of LLVM 14 frees a wild pointer after the list "0,,1". */
static void test_text_that_is_no_list_reaches_the_runtime(void **state)
{
    (void)state;
    static const char *const lists[] = {"", " ", "x", "0,,1", "0-", "2-0", "0x2", "0-2:", "0-2:0", "-1", "0;2", "0,"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        check_list(lists[i], "");
}

static void test_number_of_threads_that_is_none_reaches_the_runtime(void **state)
{
    (void)state;
    static const char *const good[] = {"1", "16", " 4 ", "4,2", "4 , 2,1"};
    static const char *const bad[] = {"", "x", "0", "4x", "-2", "4,", ",4", "4;2"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(runtime_env_counts_threads(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(runtime_env_counts_threads(bad[i]));
}

static const char *value(char **env, const char *name)
{
    const char *found = NULL;
    for (; *env; env++)
        if (strncmp(*env, name, strlen(name)) == 0 && (*env)[strlen(name)] == '=') {
            assert_null(found);                  /* once */
            found = *env + strlen(name) + 1;
        }
    return found;
}

static void test_program_starts_again_and_again(void **state)
{
    (void)state;
    struct affinity mask = cpus_0_2_and_9();
    static char *const envs[][5] = {
        {NULL}, {"A=1", NULL}, {"GOMP_CPU_AFFINITY=0-63", "OMP_STACKSIZE=64G", NULL},
        {"GOMP_CPU_AFFINITY=7", "OMP_NUM_THREADS=x", "GOMP_STACKSIZE=1", "KMP_STACKSIZE=1", NULL},
        {"OMP_WAIT_POLICY=active", "OMP_STACKSIZE=16k", NULL}};
    for (size_t i = 0; i < sizeof envs / sizeof *envs; i++) {
        char **once = runtime_env_suited((char **)(uintptr_t)envs[i], &mask);
        assert_non_null(once);
        assert_null(runtime_env_suited(once, &mask));
        assert_null(value(once, "OMP_STACKSIZE"));
        runtime_env_free(once);
    }
}

static void test_variables_of_the_user_are_lost(void **state)
{
    (void)state;
    struct affinity mask = cpus_0_2_and_9();
    char *env[] = {"A=1", "GOMP_CPU_AFFINITYX=7", "OMP_NUM_THREADS=2", "GOMP_CPU_AFFINITY=0-3", "Z=", NULL};
    char **suited = runtime_env_suited(env, &mask);
    assert_string_equal(value(suited, "A"), "1");
    assert_string_equal(value(suited, "GOMP_CPU_AFFINITYX"), "7");
    assert_string_equal(value(suited, "OMP_NUM_THREADS"), "2");
    assert_string_equal(value(suited, "GOMP_CPU_AFFINITY"), "0 2");
    assert_string_equal(value(suited, "OMP_WAIT_POLICY"), "passive");
    assert_string_equal(value(suited, "Z"), "");
    runtime_env_free(suited);
    char *theirs[] = {"OMP_WAIT_POLICY=active", "GOMP_CPU_AFFINITY=0 2", "OMP_NUM_THREADS=4,2", NULL};
    assert_null(runtime_env_suited(theirs, &mask));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu_of_another_job_stays_in_the_list),
        cmocka_unit_test(test_text_that_is_no_list_reaches_the_runtime),
        cmocka_unit_test(test_number_of_threads_that_is_none_reaches_the_runtime),
        cmocka_unit_test(test_program_starts_again_and_again),
        cmocka_unit_test(test_variables_of_the_user_are_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
