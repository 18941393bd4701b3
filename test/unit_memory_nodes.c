/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include <string.h>
#include "base/memory_nodes.h"

/* A machine: all[i] is the node of each 2 MiB, over and over. Its addresses are made up, since none of them is read. */
enum { HUGE_PAGE = 2 << 20 };
static const int *all;
static size_t n_all;
static uint8_t *const region = (uint8_t *)(uintptr_t)HUGE_PAGE;

static int ask(size_t n, void **pages, int *nodes)
{
    for (size_t i = 0; i < n; i++)
        nodes[i] = all[(size_t)((uint8_t *)pages[i] - region) / HUGE_PAGE % n_all];
    return 0;
}

static int refuse(size_t n, void **pages, int *nodes)
{
    (void)pages;
    memset(nodes, 0, n * sizeof *nodes);
    return -1;
}

static struct memory_nodes look(const int *nodes, size_t n, size_t size)
{
    struct memory_area areas[] = {{region, size / 4}, {region + size / 4, 0}, {region + size / 4, size - size / 4}};
    all = nodes;
    n_all = n;
    return memory_nodes_of(areas, N_OF(areas), ask);
}

static const size_t GB = (size_t)1 << 30;

static void test_machine_with_one_node_has_others(void **state)
{
    (void)state;
    struct memory_nodes m = look((int[]){0}, 1, 10 * GB);
    assert_true(m.bytes[0] == 10 * GB && memory_nodes_total(&m) == 10 * GB);
    assert_true(memory_nodes_fullest(&m) == 0 && memory_nodes_share(&m, 0) == 1);
    m = look((int[]){0}, 1, 1000);               /* less than a page */
    assert_true(m.bytes[0] == 1000);
}

static void check_share(const struct memory_nodes *m, int node, double share)
{
    assert_true(memory_nodes_share(m, node) > share - 0.02 && memory_nodes_share(m, node) < share + 0.02);
}

static void test_node_with_most_is_not_found(void **state)
{
    (void)state;
    struct memory_nodes m = look((int[]){0, 1, 1, 1}, 4, 3 * GB);
    assert_int_equal(memory_nodes_fullest(&m), 1);
    check_share(&m, 0, 0.25);
    check_share(&m, 1, 0.75);
}

static void test_nodes_of_a_large_machine_are_lost(void **state)
{
    (void)state;
    struct memory_nodes m = look((int[]){0, 1, 2, 3, 4, 5, 6, MEMORY_NODES_MAX - 1}, 8, 100 * GB);
    for (int node = 0; node < 7; node++)
        check_share(&m, node, 0.125);
    check_share(&m, MEMORY_NODES_MAX - 1, 0.125);
}

/* The first page of every 64 MiB is of another node, and the sample's pages are 64 MiB apart, or nearly. */
static void test_sample_falls_in_step_with_windows(void **state)
{
    (void)state;
    int nodes[32] = {1};
    for (size_t gb = 255; gb <= 257; gb++) {
        struct memory_nodes m = look(nodes, 32, gb * GB);
        check_share(&m, 1, 1 / 32.0);
    }
}

static void test_pages_that_are_not_there_count(void **state)
{
    (void)state;
    struct memory_nodes m = look((int[]){-2, 0, -14, MEMORY_NODES_MAX}, 4, GB);
    assert_true(memory_nodes_share(&m, 0) == 1 && m.bytes[0] > GB / 5 && m.bytes[0] < GB / 3);
    assert_true(memory_nodes_total(&m) == m.bytes[0]);
}

static void test_kernel_that_does_not_tell_is_believed(void **state)
{
    (void)state;
    struct memory_nodes m = memory_nodes_of(&(struct memory_area){region, GB}, 1, refuse);
    assert_true(memory_nodes_total(&m) == 0 && memory_nodes_share(&m, 0) == 0);
    m = look((int[]){0}, 1, 0);                  /* nothing to ask about */
    assert_true(memory_nodes_total(&m) == 0);
}

/* Of memory that is there: the kernel tells, or does not know the call. */
static void test_own_memory_is_nowhere(void **state)
{
    (void)state;
    static uint8_t own[1 << 20];
    memset(own, 1, sizeof own);
    struct memory_nodes m = memory_nodes_of(&(struct memory_area){own, sizeof own}, 1, memory_nodes_ask);
    uint64_t total = memory_nodes_total(&m);
    assert_true(total == 0 || total == sizeof own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_machine_with_one_node_has_others),
        cmocka_unit_test(test_node_with_most_is_not_found),
        cmocka_unit_test(test_nodes_of_a_large_machine_are_lost),
        cmocka_unit_test(test_sample_falls_in_step_with_windows),
        cmocka_unit_test(test_pages_that_are_not_there_count),
        cmocka_unit_test(test_kernel_that_does_not_tell_is_believed),
        cmocka_unit_test(test_own_memory_is_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
