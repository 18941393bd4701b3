/* SPDX-License-Identifier: MIT */
/* The expected results are those of samtools 1.24; test_header.py checks them. */
#include "unit.h"
#include <stdio.h>
#include "bam/header_text.h"

static const char *fault_of(const char *text, bool is_sam)
{
    size_t n = strlen(text);
    char *copy = (char *)exact_copy((const uint8_t *)text, n);
    struct header_text found = header_text_check(copy, n, is_sam);
    free(copy);
    return found.fault;
}

static void test_lengths_of_references_are_believed(void **state)
{
    (void)state;
    static const char *const fine[] = {"LN:1", "LN:+5", "LN: 7", "LN:10 ", "LN:5e3", "LN:99999999999999999999", "LN:5\tLN:5", "LN:5\tLN:05x",
                                       "M5:x\tLN:5", "M5:x", "XX:LN:0"};
    static const char *const broken[] = {"LN:0", "LN:00", "LN:-0", "LN:-1", "LN:x", "LN:", "LN:0x10", "LN:5\tLN:6", "LN:5\tLN:0", "LN:0\tLN:5",
                                         "LN:5\tM5:x\tLN:5\tLN:6", "LN:-99999999999999999999"};
    char text[200];
    for (size_t i = 0; i < 2 * N_OF(fine); i++) {
        snprintf(text, sizeof text, "@HD\tVN:1.6\n@SQ\tSN:a\t%s%s@CO\tLN:0\n@RG\tID:x\tLN:0", fine[i / 2], i % 2 ? "\r\n" : "\n");
        assert_null(fault_of(text, true));
        assert_null(fault_of(text, false));
    }
    for (size_t i = 0; i < N_OF(broken); i++) {
        snprintf(text, sizeof text, "@SQ\tSN:a\tLN:1\n@SQ\tSN:b\t%s", broken[i]);
        assert_non_null(fault_of(text, true));
        assert_non_null(fault_of(text, false));
        struct header_text found = header_text_check(text, strlen(text), true);
        assert_int_equal(found.number, 2);
        assert_int_equal(found.size, strlen("@SQ\tSN:b\t") + strlen(broken[i]));
    }
}

static void test_short_lines_are_dropped(void **state)
{
    (void)state;
    static const char *const broken[] = {"@", "@C", "@XX", "@SQ", "@HD\tVN:1.6\n@X\n@CO\tx\n"};
    char text[100];
    for (size_t i = 0; i < N_OF(broken); i++) {
        assert_non_null(fault_of(broken[i], true));
        snprintf(text, sizeof text, "%s\n@CO\tx", broken[i]);
        assert_non_null(fault_of(text, true));
        assert_non_null(fault_of(text, false));
    }
    assert_null(fault_of("@CO\tx\n@X\n", false));   /* the rest is too short for a line */
    assert_null(fault_of("@CO\tx\n@X", false));
    assert_non_null(fault_of("@CO\tx\n@XX", false));
    assert_non_null(fault_of("@X\n@X\n", false));
    assert_non_null(fault_of("@CO\tx\n@XX\n", false));
    assert_non_null(fault_of("@CO", false));
    assert_non_null(fault_of("@COx\n", true));
    assert_non_null(fault_of("@CO\r", true));
    assert_non_null(fault_of("@xy\tfo:o\n", true));
    assert_non_null(fault_of("@XX\tfo:o\n", true));
    assert_null(fault_of("@XX\tfo:o\n", false));
    assert_null(fault_of("@CO\n", true));
    assert_null(fault_of("@CO\r\n", true));
    assert_non_null(fault_of("@CO\n", false));
    assert_null(fault_of("", true));
    assert_null(fault_of("\n\n@CO\tx\n", true));
}

static void check_mended(const char *text, const char *want)
{
    char normalised[100];
    struct header_text found = header_text_check(text, strlen(text), true);
    assert_null(found.fault);
    assert_true(found.n_to_normalise > 0);
    assert_true(strlen(want) <= strlen(text) + found.n_to_normalise);
    assert_int_equal(header_text_normalise(normalised, text, strlen(text)), strlen(want));
    assert_memory_equal(normalised, want, strlen(want));
}

static void test_bare_comments_are_dropped(void **state)
{
    (void)state;
    check_mended("@CO\n", "@CO\t\n");
    check_mended("@CO", "@CO\t");
    check_mended("@CO\r\n@CO\n@CO\t\n@CO\tx\n", "@CO\t\n@CO\t\n@CO\t\n@CO\tx\n");
    check_mended("@HD\tVN:1.6\n@CO\n\n@CO", "@HD\tVN:1.6\n@CO\t\n\n@CO\t");
}

static void test_lines_with_a_nul_are_refused(void **state)
{
    (void)state;
    static const char text[] = "@SQ\tSN:a\tLN:9\n@CO\tab\0cd\0\r\n@CO\r\n@RG\tID:x\0", want[] = "@SQ\tSN:a\tLN:9\n@CO\tab\n@CO\t\n@RG\tID:x";
    char normalised[sizeof text + 3];
    struct header_text found = header_text_check(text, sizeof text - 1, true);
    assert_null(found.fault);
    assert_int_equal(found.n_to_normalise, 3);
    assert_int_equal(header_text_normalise(normalised, text, sizeof text - 1), sizeof want - 1);
    assert_memory_equal(normalised, want, sizeof want - 1);
    assert_non_null(header_text_check("@CO\0\tx\n", 7, true).fault);    /* samtools refuses it, too */
    assert_int_equal(header_text_check("@CO\tx\0y\n", 8, false).n_to_normalise, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths_of_references_are_believed),
        cmocka_unit_test(test_short_lines_are_dropped),
        cmocka_unit_test(test_bare_comments_are_dropped),
        cmocka_unit_test(test_lines_with_a_nul_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
