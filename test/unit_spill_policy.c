/* SPDX-License-Identifier: MIT */
#include "base/engine.h"
#include "base/latch.h"
#include "base/task_ring.h"
#include "sort/spill_policy.h"
#include "sort/spill_slice.h"
#include "unit.h"

#define MIB ((size_t)1 << 20)
enum { ARENA = 64 << 20 };

struct deciding {
    struct spill_policy policy;
    struct latch latch;
    struct engine engine;
};

static int deciding_open(struct deciding *d, const char *prefix, uint64_t at_least)
{
    struct spill_policy_options options = {
        .store = {&prefix, 1, &d->engine},
        .merge_memory = 4 * MIB,
        .at_least = at_least,
        .arena_size = ARENA,
        .slice_size = MIB,
        .help = task_no_help,
    };
    *d = (struct deciding){.engine = {.latch = &d->latch, .n_threads = 2}};
    return spill_policy_open(&d->policy, &options);
}

/* The result of spill_policy_decide() (full) or spill_policy_hurry(), and whether it then spills. */
static void check(bool full, struct spill_outlook outlook, int result, bool spills)
{
    struct deciding d;
    outlook.arena_size = ARENA;
    assert_int_equal(deciding_open(&d, "/tmp/unit_spill_policy", 0), 0);
    assert_int_equal(full ? spill_policy_decide(&d.policy, &outlook) : spill_policy_hurry(&d.policy, &outlook), result);
    assert_int_equal(d.policy.spilling, spills);
    assert_null(spill_arena(d.policy.spill));
    assert_string_equal(d.latch.message, "");
    spill_policy_close(&d.policy);
    spill_policy_close_store(&d.policy);
}

static const double FITS = 2.0 * ARENA, TOO_MUCH = 2.0 * ARENA + 1;

static void test_full_arena_leaves_though_all_may_fit_or_stays_though_it_cannot(void **state)
{
    (void)state;
    check(true, (struct spill_outlook){.other_is_empty = true}, 0, false);
    check(true, (struct spill_outlook){.records = FITS, .with_keys = FITS, .other_is_empty = true}, 0, false);
    check(true, (struct spill_outlook){.records = ARENA, .with_keys = TOO_MUCH, .other_is_empty = true}, 0, true);
    check(true, (struct spill_outlook){.records = FITS, .with_keys = FITS}, 0, true);
    check(true, (struct spill_outlook){0}, 0, true);
}

static void test_older_arena_leaves_too_early_or_when_a_pipe_waits(void **state)
{
    (void)state;
    check(false, (struct spill_outlook){.arena_free = ARENA / 4}, 0, false);
    check(false, (struct spill_outlook){.records = TOO_MUCH, .with_keys = TOO_MUCH, .arena_free = ARENA / 4}, 0, false);
    check(false, (struct spill_outlook){.records = FITS, .with_keys = FITS, .arena_free = 0}, 0, false);
    check(false, (struct spill_outlook){.records = FITS, .with_keys = TOO_MUCH, .arena_free = ARENA / 4 - 1}, 1, true);
    check(false, (struct spill_outlook){.arena_free = ARENA / 4 - 1}, 1, true);
}

/* If both arenas are full there is no memory for a store. */
static void test_store_takes_memory_that_arenas_use(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        struct deciding d;
        struct spill_outlook outlook = {
            .records = 1.2 * FITS,
            .with_keys = 1.3 * FITS,
            .arena_size = ARENA,
            .other_is_empty = !late,
        };
        assert_int_equal(deciding_open(&d, "/tmp/unit_spill_policy", 0), 0);
        assert_int_equal(spill_policy_decide(&d.policy, &outlook), 0);
        assert_int_equal(d.policy.sizes.store > 0, !late);
        assert_true(d.policy.sizes.store + 2 * d.policy.sizes.arena_size <= 2 * (size_t)ARENA);
        spill_policy_close(&d.policy);
        spill_policy_close_store(&d.policy);
    }
}

/* The slices of a run that exists already have the sizes of the beginning. */
static void test_sizes_change_while_it_spills(void **state)
{
    (void)state;
    struct deciding d;
    struct spill_outlook outlook = {.records = 1.2 * FITS, .with_keys = 1.3 * FITS, .arena_size = ARENA,
                                    .other_is_empty = true};
    assert_int_equal(deciding_open(&d, "/tmp/unit_spill_policy", 0), 0);
    assert_int_equal(spill_policy_decide(&d.policy, &outlook), 0);
    struct spill_sizes sizes = d.policy.sizes;
    assert_true(sizes.store > 0);
    outlook.other_is_empty = false;
    assert_int_equal(spill_policy_decide(&d.policy, &outlook), 0);
    assert_memory_equal(&d.policy.sizes, &sizes, sizeof sizes);
    spill_policy_close(&d.policy);
    spill_policy_close_store(&d.policy);
}

static void test_place_that_is_no_good_is_reported_late_or_without_need(void **state)
{
    (void)state;
    struct deciding d;
    struct spill_outlook outlook = {.records = TOO_MUCH, .with_keys = TOO_MUCH, .arena_size = ARENA};
    assert_int_equal(deciding_open(&d, "/nowhere/at/all/x", 2 * (uint64_t)ARENA + 1), -1);
    assert_string_not_equal(d.latch.message, "");
    spill_policy_close(&d.policy);
    spill_policy_close_store(&d.policy);
    assert_int_equal(deciding_open(&d, "/nowhere/at/all/x", 2 * (uint64_t)ARENA), 0);
    assert_int_equal(spill_policy_decide(&d.policy, &outlook), -1);
    assert_string_not_equal(d.latch.message, "");
    spill_policy_close(&d.policy);
    spill_policy_close_store(&d.policy);
}

static void test_without_runs_the_merge_is_told_of_some(void **state)
{
    (void)state;
    struct deciding d;
    struct merge_runs runs = {.n = 1};
    assert_int_equal(deciding_open(&d, "/tmp/unit_spill_policy", 0), 0);
    assert_int_equal(spill_policy_await(&d.policy), 0);
    assert_int_equal(spill_policy_read_back(&d.policy, NULL, 0, NULL, false, &runs), 0);
    assert_int_equal(runs.n, 0);
    spill_policy_close(&d.policy);
    spill_policy_close_store(&d.policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_arena_leaves_though_all_may_fit_or_stays_though_it_cannot),
        cmocka_unit_test(test_older_arena_leaves_too_early_or_when_a_pipe_waits),
        cmocka_unit_test(test_store_takes_memory_that_arenas_use),
        cmocka_unit_test(test_sizes_change_while_it_spills),
        cmocka_unit_test(test_place_that_is_no_good_is_reported_late_or_without_need),
        cmocka_unit_test(test_without_runs_the_merge_is_told_of_some),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
