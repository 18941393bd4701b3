/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include <math.h>
#include "report/report_compare.h"

static const char whole[] = "{\"version\": \"1\", \"wall_s\": 2, \"records\": 5, \"host\": \"a\", \"stages\": {\"other\": {\"s\": 1}, \"merge\": {\"s\": 0.004}, \"sort\": {\"s\": 0.5}}}";

static void test_file_of_another_program_is_compared(void **state)
{
    (void)state;
    struct report_compare_side side;
    static const char *const others[] = {
        "{}", "[]", "1", "{\"version\": 1, \"wall_s\": 2, \"records\": 5, \"stages\": {\"other\": {\"s\": 1}}}",
        "{\"version\": \"1\", \"wall_s\": \"2\", \"records\": 5, \"stages\": {\"other\": {\"s\": 1}}}",
        "{\"version\": \"1\", \"wall_s\": -2, \"records\": 5, \"stages\": {\"other\": {\"s\": 1}}}",
        "{\"version\": \"1\", \"wall_s\": 2, \"stages\": {\"other\": {\"s\": 1}}}",
        "{\"version\": \"1\", \"wall_s\": 2, \"records\": 5, \"stages\": {\"others\": {\"s\": 1}}}"};
    for (size_t i = 0; i < N_OF(others); i++)
        assert_int_equal(report_compare_read(&side, "x", others[i], strlen(others[i])), -1);
    assert_int_equal(report_compare_read(&side, "x", whole, strlen(whole) - 1), -1);
    assert_int_equal(report_compare_read(&side, "x", whole, strlen(whole)), 0);
    assert_true(side.numbers[0] == 2 && side.stages[STAGE_SORT] == 0.5 && isnan(side.stages[STAGE_READ]));
}

static char *shown(void show(const struct report_compare_side *, FILE *), const char *a, const char *b)
{
    struct report_compare_side sides[2];
    char *text;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    MUST(to && report_compare_read(&sides[0], "a.json", a, strlen(a)) == 0
         && report_compare_read(&sides[1], "<b>&.json", b, strlen(b)) == 0);
    show(sides, to);
    fclose(to);
    return text;
}

static void check_row(const char *text, const char *what, const char *a, const char *b, const char *ratio)
{
    char row[200];
    snprintf(row, sizeof row, "\n  %-28s %24s %24s %8s\n", what, a, b, ratio);
    assert_non_null(strstr(text, row));
}

static void test_ratio_is_of_other_numbers(void **state)
{
    (void)state;
    static const char faster[] = "{\"version\": \"1\", \"wall_s\": 1.5, \"records\": 6, \"host\": \"a\", \"stages\": {\"other\": {\"s\": 0}, \"merge\": {\"s\": 1}, \"sort\": {\"s\": 1}}}";
    char *text = shown(report_compare_text, whole, faster), *page = shown(report_compare_html, whole, faster);
    check_row(text, "wall time, s", "2.00", "1.50", "0.75");
    check_row(text, "sort", "0.50", "1.00", "2.00");
    check_row(text, "merge", "0.00", "1.00", "");
    check_row(text, "peak memory, MB", "unknown", "unknown", "");
    assert_non_null(strstr(text, "numbers of records differ"));
    assert_non_null(strstr(page, "<td>wall time, s</td><td data-label=\"A\">2.00</td><td data-label=\"B\">1.50</td>"
                                 "<td data-label=\"B / A\" class=\"good\">0.75</td>"));
    assert_non_null(strstr(page, "<td>sort</td><td data-label=\"A\">0.50</td><td data-label=\"B\">1.00</td>"
                                 "<td data-label=\"B / A\" class=\"bad\">2.00</td>"));
    assert_non_null(strstr(page, "&lt;b&gt;&amp;.json"));
    assert_null(strstr(page, "nan"));
    free(text);
    free(page);
    text = shown(report_compare_text, whole, whole);
    assert_null(strstr(text, "differ"));
    free(text);
}

/* A report of 4 records; the time of stages is that of 2 threads. */
static char *report_of(double wall, double deflate, double merge, double sort)
{
    char *text;
    MUST(asprintf(&text, "{\"version\": \"1\", \"wall_s\": %g, \"records\": 4, \"threads\": 2, \"stages\": {\"other\": {\"s\": 0}, "
                  "\"deflate\": {\"s\": %g}, \"merge\": {\"s\": %g}, \"sort\": {\"s\": %g}}}", wall, deflate, merge, sort) > 0);
    return text;
}

static void test_headline_blames_noise_or_the_wrong_stage(void **state)
{
    (void)state;
    static const struct { double b[4]; const char *line; } cases[] = {
        {{13.9, 13, 4.5, 2}, "B is 1.39 x slower: deflate +3.00 s, merge +1.50 s\n"},
        {{8, 8, 2.9, 3}, "B is 1.25 x faster: deflate -2.00 s\n"},          /* merge: at least 2 % of all; sort grew */
        {{10.2, 10.5, 3, 2}, "A and B take the same time, within 3 %\n"},
        {{12, 10, 3.3, 2.3}, "B is 1.20 x slower\n"},
    };
    char *a = report_of(10, 10, 3, 2);
    for (size_t i = 0; i < N_OF(cases); i++) {
        char *b = report_of(cases[i].b[0], cases[i].b[1], cases[i].b[2], cases[i].b[3]);
        char *text = shown(report_compare_text, a, b), *page = shown(report_compare_html, a, b);
        assert_true(strncmp(text + 2, cases[i].line, strlen(cases[i].line)) == 0);
        assert_non_null(strstr(page, "<h1>"));
        assert_int_equal(strncmp(strstr(page, "<h1>") + 4, cases[i].line, strlen(cases[i].line) - 1), 0);
        assert_null(strstr(page, "<td>merge</td><td data-label=\"A\">3.00</td><td data-label=\"B\">3.30</td>"
                                 "<td data-label=\"B / A\" class"));
        free(b);
        free(text);
        free(page);
    }
    free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_of_another_program_is_compared),
        cmocka_unit_test(test_ratio_is_of_other_numbers),
        cmocka_unit_test(test_headline_blames_noise_or_the_wrong_stage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
