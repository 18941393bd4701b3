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
        size_t most = 1 + unit_below(&seed, 20000), at = 0, size;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_are_too_large_or_lose_a_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
