/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "read/record_slice.h"
#include "unit.h"

/* Lists random records; one of four is long. */
static void fill(struct record_slice *s, uint64_t *seed, size_t n)
{
    enum bam_fault fault;
    record_slice_clear(s);
    for (size_t i = 0; i < n; i++) {
        struct unit_bytes one = {NULL, 0, 0};
        unit_append_plain(&one, seed, unit_below(seed, 4) ? 100 : 5000);
        size_t start = s->records.n;
        assert_int_equal(byte_buffer_append(&s->records, one.data, one.n), 0);
        assert_int_equal(record_slice_list(s, start, false, NULL, &fault), 0);
        free(one.data);
    }
}

static size_t size_of(const struct record_slice *s, size_t number)
{
    return bam_key_record_size(s->records.p, s->keys[number]);
}

static void test_pieces_are_too_large_or_lose_a_record(void **state)
{
    (void)state;
    uint64_t seed = 3;
    struct record_slice s = {.n = 0};
    for (int round = 0; round < 200; round++) {
        fill(&s, &seed, 1 + unit_below(&seed, 60));
        size_t most = round % 4 ? 1 + unit_below(&seed, 20000) : s.records.n - (size_t)round % 8 / 4, at = 0, size;
        for (size_t first = 0, n; first < s.n; first += n, at += size) {
            size_t sum = 0;
            n = record_slice_fit(&s, first, most, &size);
            assert_in_range(n, 1, s.n - first);
            for (size_t i = first; i < first + n; i++)
                sum += size_of(&s, i);
            assert_int_equal(size, sum);
            assert_true(n == 1 || size <= most);
            assert_true(first + n == s.n || size + size_of(&s, first + n) > most);
        }
        assert_int_equal(at, s.records.n);
    }
    record_slice_free(&s);
}

/* Lists records at these positions of a reference. */
static void add(struct record_slice *s, const int *positions, size_t n)
{
    enum bam_fault fault;
    for (size_t i = 0; i < n; i++) {
        struct unit_bytes one = {NULL, 0, 0};
        struct unit_record r = {.ref_id = 0, .pos = positions[i], .name = "r"};
        size_t start = s->records.n;
        unit_append_record(&one, &r);
        assert_int_equal(byte_buffer_append(&s->records, one.data, one.n), 0);
        assert_int_equal(record_slice_list(s, start, false, NULL, &fault), 0);
        free(one.data);
    }
}

/* The slices are cut in two at each place. Joined, they have the same records, and the same first record that is out of
 * order. */
static void test_appended_records_are_others_or_their_order_is_not_seen(void **state)
{
    (void)state;
    static const int positions[][6] = {{1, 2, 2, 3, 5, 8}, {1, 2, 3, 2, 5, 4}, {6, 5, 4, 3, 2, 1}, {1, 2, 3, 4, 5, 4}};
    for (size_t row = 0; row < N_OF(positions); row++)
        for (size_t cut = 0; cut <= 6; cut++) {
            struct record_slice whole = {.n = 0}, first = {.n = 0}, more = {.n = 0};
            add(&whole, positions[row], 6);
            add(&first, positions[row], cut);
            add(&more, positions[row] + cut, 6 - cut);
            assert_int_equal(record_slice_append(&first, &more, NULL), 0);
            assert_int_equal(first.n, 6);
            assert_int_equal(first.bytes, whole.bytes);
            assert_int_equal(first.checksum, whole.checksum);
            assert_int_equal(first.out_of_order, whole.out_of_order);
            for (size_t i = 0; i < 6; i++) {
                assert_int_equal(size_of(&first, i), size_of(&whole, i));
                assert_memory_equal(bam_key_record(first.records.p, first.keys[i]),
                                    bam_key_record(whole.records.p, whole.keys[i]), size_of(&whole, i));
            }
            record_slice_free(&whole);
            record_slice_free(&first);
            record_slice_free(&more);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_are_too_large_or_lose_a_record),
        cmocka_unit_test(test_appended_records_are_others_or_their_order_is_not_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
