/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include "markdup/dup_counts.h"

static const struct dup_counts some = {
    .read = 1000, .written = 999, .excluded = 10, .examined = 990, .paired = 800, .single = 190, .duplicate_pair = 200,
    .duplicate_single = 20, .optical_pair = 40, .optical_single = 2, .non_primary = 3, .non_primary_optical = 1,
};

static void text_as_samtools_has_it(void **state)
{
    (void)state;
    struct byte_buffer text = {NULL, 0, 0};
    assert_int_equal(dup_counts_text(&text, "samtools markdup a b", &some, NULL), 0);
    static const char expected[] =
        "COMMAND: samtools markdup a b\n"
        "READ: 1000\nWRITTEN: 999\nEXCLUDED: 10\nEXAMINED: 990\nPAIRED: 800\nSINGLE: 190\n"
        "DUPLICATE PAIR: 200\nDUPLICATE SINGLE: 20\nDUPLICATE PAIR OPTICAL: 40\nDUPLICATE SINGLE OPTICAL: 2\n"
        "DUPLICATE NON PRIMARY: 3\nDUPLICATE NON PRIMARY OPTICAL: 1\nDUPLICATE PRIMARY TOTAL: 220\n"
        "DUPLICATE TOTAL: 223\nESTIMATED_LIBRARY_SIZE: 770\n\n";
    assert_string_equal((char *)text.p, expected);
    assert_int_equal(text.n, sizeof expected - 1);
    free(text.p);
}

static void groups_come_after_the_sum(void **state)
{
    (void)state;
    struct byte_buffer text = {NULL, 0, 0};
    struct name_table groups = {.mask = 0};
    struct dup_counts counts[3] = {{.read = 5}, {.read = 0}, {.read = 7}};
    assert_int_equal(name_table_add(&groups, "g1", 2), 0);
    assert_int_equal(name_table_add(&groups, "g2", 2), 1);
    for (int ungrouped = 1; ungrouped >= 0; ungrouped--) {
        text.n = 0;
        counts[0].read = ungrouped ? 5 : 0;
        assert_int_equal(dup_counts_text(&text, "c", counts, &groups), 0);
        assert_non_null(strstr((char *)text.p, ungrouped ? "READ: 12\n" : "READ: 7\n"));
        assert_int_equal(!strstr((char *)text.p, "READ GROUP: ungrouped\nREAD: 5\n"), !ungrouped);
        assert_non_null(strstr((char *)text.p, "\n\nREAD GROUP: g1\nREAD: 0\n"));
        assert_non_null(strstr((char *)text.p, "\n\nREAD GROUP: g2\nREAD: 7\n"));
        text.n = 0;
        assert_int_equal(dup_counts_json(&text, "c", counts, &groups), 0);
        assert_memory_equal(text.p, "{\n    \"COMMAND\": \"c\",\n    \"READ\": ", 34);
        assert_int_equal(!strstr((char *)text.p, "\"READ GROUP\": \"ungrouped\""), !ungrouped);
        assert_non_null(strstr((char *)text.p, ",\n    \"READ GROUPS\": [\n        {\n            \"READ GROUP\": \""));
        assert_non_null(strstr((char *)text.p, "\"ESTIMATED_LIBRARY_SIZE\": 0\n        },\n        {\n"));
        assert_string_equal((char *)text.p + text.n - 18, "        }\n    ]\n}\n");
    }
    text.n = 0;
    assert_int_equal(dup_counts_json(&text, "c", counts, NULL), 0);
    assert_non_null(strstr((char *)text.p, "    \"ESTIMATED_LIBRARY_SIZE\": 0\n}\n"));
    free(text.p);
    name_table_free(&groups);
}

static void library_sizes(void **state)
{
    (void)state;
    assert_int_equal(dup_counts_library(100, 0, 0), 0);
    assert_int_equal(dup_counts_library(800, 200, 40), 770);
    assert_int_equal(dup_counts_library(0, 0, 0), 0);
    assert_int_equal(dup_counts_library(800, 0, 0), 0);
    assert_int_equal(dup_counts_library(800, 800, 0), 0);
    assert_int_equal(dup_counts_library(20000, 2000, 10), 46810);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_as_samtools_has_it), cmocka_unit_test(groups_come_after_the_sum),
        cmocka_unit_test(library_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
