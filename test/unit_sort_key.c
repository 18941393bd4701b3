/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include "sort_key.h"

static const int32_t refs[] = {-1, 0, 1, 2, 255, 256, 65535, 1 << 30, INT32_MAX - 1};
static const int32_t positions[] = {-1, 0, 1, 2, 0x7fff, 0xffff, 0x10000, 1 << 29, INT32_MAX - 1, INT32_MAX,
                                    -2, -3, INT32_MIN, INT32_MIN + 1};
static const uint16_t flags[] = {0, 0x10, 0x4, 0x14, 0xffef, 0xffff, 0x8, 0x20, 0x400};
enum { N_RECORDS = N_OF(refs) * N_OF(positions) * N_OF(flags) };

static void set_record(struct bam_record *r, int32_t ref, int32_t pos, uint16_t flag)
{
    memset(r, 0xa5, sizeof *r);                  /* no other field may matter */
    store_le32(r->ref_id, (uint32_t)ref);
    store_le32(r->pos, (uint32_t)pos);
    store_le16(r->flag, flag);
}

static int compare(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* samtools' order in words: reference, none last; position + 1, unsigned; strand. */
static int naive(const struct bam_record *a, const struct bam_record *b)
{
    int64_t ref_a = bam_record_ref_id(a), ref_b = bam_record_ref_id(b);
    if (ref_a == -1) ref_a = INT64_MAX;
    if (ref_b == -1) ref_b = INT64_MAX;
    if (ref_a != ref_b)
        return ref_a < ref_b ? -1 : 1;
    uint32_t pos_a = (uint32_t)bam_record_pos(a) + 1, pos_b = (uint32_t)bam_record_pos(b) + 1;
    if (pos_a != pos_b)
        return pos_a < pos_b ? -1 : 1;
    int rev_a = bam_record_flag(a) >> 4 & 1, rev_b = bam_record_flag(b) >> 4 & 1;
    return rev_a - rev_b;
}

static void test_edge_values_order_as_samtools_orders_them(void **state)
{
    (void)state;
    struct bam_record *r = unit_alloc(N_RECORDS * sizeof *r);
    size_t n = 0;
    for (size_t i = 0; i < N_OF(refs); i++)
        for (size_t j = 0; j < N_OF(positions); j++)
            for (size_t k = 0; k < N_OF(flags); k++)
                set_record(&r[n++], refs[i], positions[j], flags[k]);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            if (compare(sort_key_coordinate(&r[i]), sort_key_coordinate(&r[j])) != naive(&r[i], &r[j]))
                fail_msg("(%d, %d, %x) against (%d, %d, %x)", bam_record_ref_id(&r[i]),
                         bam_record_pos(&r[i]), bam_record_flag(&r[i]), bam_record_ref_id(&r[j]),
                         bam_record_pos(&r[j]), bam_record_flag(&r[j]));
    free(r);
}

static void test_unplaced_reads_come_after_every_reference(void **state)
{
    (void)state;
    struct bam_record last, none;
    set_record(&last, INT32_MAX - 1, INT32_MAX, 0x10);
    set_record(&none, -1, -1, 0);
    assert_true(sort_key_coordinate(&last) < sort_key_coordinate(&none));
    set_record(&last, INT32_MAX - 1, -2, 0xffff);
    assert_true(sort_key_coordinate(&last) < sort_key_coordinate(&none));
}

static void test_only_the_strand_bit_of_the_flag_counts(void **state)
{
    (void)state;
    struct bam_record r;
    set_record(&r, 3, 1000, 0);
    uint64_t forward = sort_key_coordinate(&r);
    for (uint32_t flag = 0; flag <= 0xffff; flag++) {
        store_le16(r.flag, (uint16_t)flag);
        assert_int_equal(sort_key_coordinate(&r), forward + (flag >> 4 & 1));
    }
}

static void test_position_overflow_does_not_reach_the_reference(void **state)
{
    (void)state;
    struct bam_record r, next;
    for (size_t i = 0; i < N_OF(positions); i++) {
        set_record(&r, 7, positions[i], 0x10);
        set_record(&next, 8, -1, 0);
        assert_true(sort_key_coordinate(&r) < sort_key_coordinate(&next));
        set_record(&next, 6, -2, 0x10);
        assert_true(sort_key_coordinate(&next) < sort_key_coordinate(&r));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edge_values_order_as_samtools_orders_them),
        cmocka_unit_test(test_unplaced_reads_come_after_every_reference),
        cmocka_unit_test(test_only_the_strand_bit_of_the_flag_counts),
        cmocka_unit_test(test_position_overflow_does_not_reach_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
