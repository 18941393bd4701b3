/* SPDX-License-Identifier: MIT */
/* The ends of blocks in bgzip: no byte is skipped, and lines, records and places of an index are kept. */
#include "unit.h"
#include <stdlib.h>
#include "base/endian_io.h"
#include "bgzip/block_cut.h"
#include "bgzip/gzi_index.h"
#include "codec/bgzf_block.h"

enum { SIZE = 700000 };

static uint8_t data[SIZE];

/* Cuts n bytes; the sizes go to sizes[]. Returns their number. */
static size_t cut_all(struct block_cut cut, size_t n, uint32_t *sizes)
{
    size_t at = 0, k = 0;
    while (at < n) {
        size_t left = n - at, seen = left < BGZF_FILL ? left : BGZF_FILL;
        uint8_t *exact = malloc(seen);           /* so that the sanitizer reports a read after it */
        MUST(exact);
        memcpy(exact, data + at, seen);
        sizes[k] = block_cut_next(&cut, exact, (uint32_t)seen);
        free(exact);
        assert_in_range(sizes[k], 1, seen);
        at += sizes[k++];
    }
    assert_int_equal(cut.at, n);
    return k;
}

static void test_line_is_cut(void **state)
{
    (void)state;
    static uint32_t sizes[SIZE];
    uint64_t seed = 1;
    size_t at = 0;
    for (size_t i = 0; i < SIZE; i++)
        data[i] = unit_below(&seed, 300) == 0 ? '\n' : 'x';
    memset(data + 100000, 'x', 140000);          /* a line longer than two blocks */
    size_t n = cut_all((struct block_cut){.kind = CUT_LINES}, SIZE, sizes), inside = 0;
    for (size_t k = 0; k + 1 < n; k++) {
        at += sizes[k];
        inside += data[at - 1] != '\n';
        assert_true(data[at - 1] == '\n' || sizes[k] == BGZF_FILL);
    }
    assert_int_equal(inside, 2);
    n = cut_all((struct block_cut){.kind = CUT_ANYWHERE}, SIZE, sizes);
    assert_int_equal(n, (SIZE + BGZF_FILL - 1) / BGZF_FILL);
}

/* Lays out BAM with names and records of these sizes; returns the start of its records. */
static size_t make_bam(uint32_t text, uint32_t n_ref, uint32_t l_name, uint32_t record, uint32_t spread)
{
    uint64_t seed = record;
    size_t at = 0;
    unit_fill(&seed, data, SIZE);
    memcpy(data, "BAM\1", 4);
    store_le32(data + 4, text);
    store_le32(data + 8 + text, n_ref);
    at = 12 + text;
    for (uint32_t i = 0; i < n_ref; i++, at += 8 + l_name)
        store_le32(data + at, l_name);
    size_t begin = at;
    for (uint32_t size; at + 4 <= SIZE; at += 4 + (size_t)size)
        store_le32(data + at, size = record + unit_below(&seed, spread));
    return begin;
}

/* Blocks end with records, except those in the header and in long records. */
static void test_record_is_cut(void **state)
{
    (void)state;
    static uint32_t sizes[SIZE];
    static const struct { uint32_t text, n_ref, l_name, record, spread; } cases[] = {
        {0, 0, 0, 200, 400}, {70000, 1, 5, 32, 3}, {65272, 3, 7, 60, 9}, {65269, 3, 7, 60, 9}, {10, 20000, 11, 300, 1},
        {10, 1, 5, 70000, 9}, {10, 1, 5, 65276, 1}, {10, 1, 5, 30000, 30000}};
    for (size_t c = 0; c < N_OF(cases); c++) {
        size_t at = 0, last = 0;
        size_t next = make_bam(cases[c].text, cases[c].n_ref, cases[c].l_name, cases[c].record, cases[c].spread);
        size_t n = cut_all((struct block_cut){.kind = CUT_RECORDS}, SIZE, sizes);
        for (size_t k = 0; k + 1 < n; k++) {
            at += sizes[k];
            for (; next < at; next += 4 + (size_t)load_le32(data + next))
                last = next;
            assert_true(next == at || last == 0 || next - last > BGZF_FILL);
        }
        assert_true(n <= 2 + 2 * SIZE / BGZF_FILL);
    }
}

static void test_hostile_bam_is_followed(void **state)
{
    (void)state;
    static uint32_t sizes[SIZE];
    uint64_t seed = 9;
    for (int turn = 0; turn < 200; turn++) {
        make_bam(unit_below(&seed, 200), unit_below(&seed, 30), unit_below(&seed, 30), 32 + unit_below(&seed, 300), 100);
        for (int k = 0; k < 3; k++)
            store_le32(data + 4 + unit_below(&seed, turn % 2 ? 100 : 200000), (uint32_t)unit_random(&seed) >> unit_below(&seed, 32));
        cut_all((struct block_cut){.kind = CUT_RECORDS}, 200000, sizes);
    }
}

static void test_place_of_the_index_is_cut_over(void **state)
{
    (void)state;
    static uint32_t sizes[SIZE];
    struct gzi_place places[] = {{1, 0}, {2, 10}, {3, 10}, {4, 65290}, {5, 65291}, {6, 300000}, {7, 500000}};
    struct gzi_index index = {.places = places, .n = N_OF(places)};
    struct block_cut cut = {.kind = CUT_PLACES, .places = &index};
    static const uint32_t expected[] = {10, 65280, 1, 65280, 65280, 65280, 38869, 65280, 34720};
    assert_int_equal(cut_all(cut, 400000, sizes), N_OF(expected));
    assert_memory_equal(sizes, expected, sizeof expected);
    cut.at = 400000;
    assert_true(block_cut_lacks_places(&cut));
    cut.at = 500000;
    assert_false(block_cut_lacks_places(&cut));
    index.n = 0;
    assert_int_equal(cut_all(cut = (struct block_cut){.kind = CUT_PLACES, .places = &index}, 65281, sizes), 2);
    assert_false(block_cut_lacks_places(&cut));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line_is_cut),
        cmocka_unit_test(test_record_is_cut),
        cmocka_unit_test(test_hostile_bam_is_followed),
        cmocka_unit_test(test_place_of_the_index_is_cut_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
