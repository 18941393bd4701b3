/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include "base/latch.h"
#include "sort/arenas.h"

enum { SIZE = 100 << 20, STEP = 4096 };

static void fill(struct bam_arena *arena)
{
    for (size_t at = 0; at < SIZE; at += STEP)
        arena->base[at] = 1;
}

static size_t bytes_left(const struct bam_arena *arena)
{
    size_t left = 0;
    for (size_t at = 0; at < SIZE; at += STEP)
        left += arena->base[at];
    return left;
}

/* Memory that was given back reads as zeros. */
static void test_shares_are_all_memory(void **state)
{
    (void)state;
    static const size_t n_shares[] = {1, 2, 3, 8, 64};
    for (size_t i = 0; i < N_OF(n_shares); i++) {
        struct latch latch = {0};
        struct arenas arenas;
        MUST(arenas_open(&arenas, SIZE, &latch) == 0);
        fill(&arenas.each[0]);
        fill(&arenas.each[1]);
        for (size_t share = 0; share < n_shares[i]; share++)
            arenas_give_back(&arenas, share, n_shares[i]);
        assert_int_equal(bytes_left(&arenas.each[0]) + bytes_left(&arenas.each[1]), 0);
        arenas_close(&arenas);
    }
}

static void test_records_or_keys_are_not_counted_as_memory(void **state)
{
    (void)state;
    struct latch latch = {0};
    struct arenas arenas;
    MUST(arenas_open(&arenas, SIZE, &latch) == 0);
    assert_int_equal(arenas_taken(&arenas), 0);
    for (int i = 0; i < 2; i++) {
        bam_arena_take(&arenas.each[i], 1000);
        assert_int_equal(arenas_taken(&arenas), 1000 + (uint64_t)i * (1000 + 7 * sizeof(struct bam_key)));
        bam_arena_list(&arenas.each[i], 7);
    }
    assert_int_equal(arenas_taken(&arenas), 2 * (1000 + 7 * sizeof(struct bam_key)));
    arenas_close(&arenas);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares_are_all_memory),
        cmocka_unit_test(test_records_or_keys_are_not_counted_as_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
