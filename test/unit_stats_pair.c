/* SPDX-License-Identifier: MIT */
/* Tests which parts of `stats` can be prepared in pairs. test_stats.py compares the output of paired parts with that of
 * samtools. */
#include <htslib/sam.h>
#include "stats/stats_part.h"
#include "stats/stats_settings.h"
#include "unit.h"

static struct stats_settings settings;

enum { READ = 50 };

/* Counts one record of 50 bases. The first operation of its CIGAR skips this many bases of the reference. */
static void count(struct stats_part *part, int32_t ref, int32_t pos, uint16_t flag, uint32_t skipped)
{
    const uint32_t cigar[] = {UNIT_OP(skipped, UNIT_N), UNIT_OP(READ, UNIT_M)};
    struct stats_sums sums = {.most_inserts = 0};
    struct unit_bytes bytes = {0};
    unit_append_record(&bytes, &(struct unit_record){.ref_id = ref, .pos = pos, .flag = flag, .name = "r",
                                                     .cigar = cigar, .n_cigar = N_OF(cigar), .seq_len = READ});
    MUST(stats_part_add(part, &sums, bytes.data) == 0);
    stats_sums_free(&sums);
    unit_free(&bytes);
}

/* Returns whether two parts of one record each can be paired: one at place 1000 of a reference, and the other one. */
static bool pairs_after(int32_t first_ref, uint32_t skipped, int32_t ref, int32_t pos, uint16_t flag)
{
    struct stats_part *left = stats_part_open(&settings), *right = stats_part_open(&settings);
    MUST(left && right);
    count(left, first_ref, 1000, 0, skipped);
    count(right, ref, pos, flag, 0);
    bool done = stats_part_pair(left, left, right);
    stats_part_close(left);
    stats_part_close(right);
    return done;
}

static bool pairs(int32_t ref, int32_t pos, uint16_t flag)
{
    return pairs_after(0, 0, ref, pos, flag);
}

static void test_parts_out_of_order_are_paired(void **state)
{
    (void)state;
    assert_true(pairs(0, 1000, 0));
    assert_true(pairs(1, 7, 0));
    assert_false(pairs(0, 999, 0));
}

static void test_parts_without_places_are_paired(void **state)
{
    (void)state;
    assert_false(pairs(0, 1000, BAM_FUNMAP));
    assert_false(pairs(-1, -1, 0));
    assert_false(pairs_after(-1, 0, 0, 1000, 0));
}

/* Such a part is counted from its log. Its read reaches the end of the ring, so cells change places. */
static void test_parts_that_turn_late_are_paired(void **state)
{
    (void)state;
    assert_true(pairs_after(0, STATS_RING_SIZE - READ, 0, 1000, 0));
    assert_true(pairs_after(0, STATS_RING_SIZE - READ - 1, 1, 1000, 0));
    assert_false(pairs_after(0, STATS_RING_SIZE - READ, 1, 1000, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_out_of_order_are_paired),
        cmocka_unit_test(test_parts_without_places_are_paired),
        cmocka_unit_test(test_parts_that_turn_late_are_paired),
    };
    settings = stats_settings_default();
    MUST(stats_depth_bins_set(&settings.bins, settings.depth_min, settings.depth_max, settings.depth_step) == 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
