/* SPDX-License-Identifier: MIT */
/* Tests which parts of `stats` can be prepared in pairs. test_stats.py compares the output of paired parts with that of
 * samtools. */
#include <htslib/sam.h>
#include "hts/bam1_bytes.h"
#include "stats/stats_part.h"
#include "stats/stats_settings.h"
#include "unit.h"

static struct stats_settings settings;

/* Counts one record of 50 bases. */
static void count(struct stats_part *part, int32_t ref, int64_t pos, uint16_t flag)
{
    enum { READ = 50 };
    struct stats_sums sums = {.most_inserts = 0};
    struct byte_buffer bytes = {0};
    char seq[READ], qual[READ];
    uint32_t cigar = READ << BAM_CIGAR_SHIFT | BAM_CMATCH;
    bam1_t *b = bam_init1();
    memset(seq, 'A', READ);
    memset(qual, 30, READ);
    MUST(b && bam_set1(b, 1, "r", flag, ref, pos, 60, 1, &cigar, -1, -1, 0, READ, seq, qual, 0) >= 0);
    MUST(bam1_bytes_append(&bytes, b) == 0 && stats_part_add(part, &sums, bytes.p) == 0);
    stats_sums_free(&sums);
    free(bytes.p);
    bam_destroy1(b);
}

/* Returns whether two parts of one record each can be paired: one at place 1000 of reference 0, and this one. */
static bool pairs(int32_t ref, int64_t pos, uint16_t flag)
{
    struct stats_part *left = stats_part_open(&settings), *right = stats_part_open(&settings);
    MUST(left && right);
    count(left, 0, 1000, 0);
    count(right, ref, pos, flag);
    bool done = stats_part_pair(left, left, right);
    stats_part_close(left);
    stats_part_close(right);
    return done;
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
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_out_of_order_are_paired),
        cmocka_unit_test(test_parts_without_places_are_paired),
    };
    settings = stats_settings_default();
    MUST(stats_depth_bins_set(&settings.bins, settings.depth_min, settings.depth_max, settings.depth_step) == 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
