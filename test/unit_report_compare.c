/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include <math.h>
#include "report/json_reader.h"
#include "report/report_compare.h"

/* What was found: "path=value;" of each. */
struct found {
    char text[1000];
};

static void add(void *arg, const struct json_value *v)
{
    struct found *f = arg;
    char value[300];
    if (v->kind == JSON_NUMBER)
        snprintf(value, sizeof value, "%g", v->number);
    else
        snprintf(value, sizeof value, "%s", v->kind == JSON_TEXT ? v->text : v->kind == JSON_NULL ? "NULL"
                 : v->kind == JSON_TRUE ? "TRUE" : "FALSE");
    snprintf(f->text + strlen(f->text), sizeof f->text - strlen(f->text), "%s=%s;", v->path, value);
}

static void check(const char *json, int result, const char *values)
{
    struct found f = {""};
    char *exact = malloc(strlen(json) + 1);      /* and no byte behind it */
    MUST(exact);
    memcpy(exact, json, strlen(json));
    assert_int_equal(json_reader_run(exact, strlen(json), add, &f), result);
    if (result == 0)
        assert_string_equal(f.text, values);
    free(exact);
}

static void test_values_are_not_those_of_the_text(void **state)
{
    (void)state;
    check("1", 0, "=1;");
    check(" {\"a\": 1.5e2, \"b\" : [true,false , null, -0.25],\n\"c\":{\"d\":{}, \"e\":[]} }\t\r", 0,
          "a=150;b/0=TRUE;b/1=FALSE;b/2=NULL;b/3=-0.25;");
    check("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e4\\u20ac\\ud83d\\ude00\\uD83D\\uDE00\"", 0,
          "=\"\\/\b\f\n\r\tA\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\xf0\x9f\x98\x80;");
    check("[[1],[[2]],3]", 0, "0/0=1;1/0/0=2;2=3;");
    check("[0,-0,10,1E+2,1e-2]", 0, "0=0;1=-0;2=10;3=100;4=0.01;");
}

static void test_what_is_no_json_is_taken(void **state)
{
    (void)state;
    static const char *const broken[] = {
        "", " ", "{", "}", "[", "[1", "[1,", "[1,]", "{,}", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "{'a':1}", "1 2", "1,", "{}{}",
        "01", "-", "-a", "1.", ".5", "+1", "1e", "1e+", "0x10", "nan", "Infinity", "1e999", "tru", "nul", "truefalse", "\"", "\"\\",
        "\"\\u12", "\"\\x41\"", "\"\\u12g4\"", "\"\\ud83d\"", "\"\\ud83dx\"", "\"\\ude00\"", "\"\\ud83d\\u0041\"", "\"a\nb\"",
        "\"\\", "[[[[[[[[[1]]]]]]]]]", "// c\n1", "[1 2]", "{\"a\":1 \"b\":2}", "[1}", "{\"a\":1]", ("\xef\xbb\xbf" "1")};
    for (size_t i = 0; i < N_OF(broken); i++)
        check(broken[i], -1, "");
    check("[[[[[[[1]]]]]]]", 0, "0/0/0/0/0/0/0=1;");
}

static void test_long_keys_and_numbers_run_over(void **state)
{
    (void)state;
    char json[1000], key[600];
    for (int n = 250; n < 260; n++) {
        memset(key, 'k', (size_t)n);
        key[n] = 0;
        snprintf(json, sizeof json, "{\"%s\": 1}", key);
        struct found f = {""};
        assert_int_equal(json_reader_run(json, strlen(json), add, &f), n < JSON_PATH ? 0 : -1);
    }
    memset(key, '1', 500);
    key[500] = 0;
    check(key, -1, "");
}

static const char whole[] = "{\"version\": \"1\", \"wall_s\": 2, \"records\": 5, \"host\": \"a\", \"stages\": {\"other\": {\"s\": 1}, \"sort\": {\"s\": 0.5}}}";

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
    assert_int_equal(report_compare_read(&side, "x", whole, strlen(whole)), 0);
    assert_int_equal(report_compare_read(&side, "x", whole, strlen(whole) - 1), -1);
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
    static const char faster[] = "{\"version\": \"1\", \"wall_s\": 1.5, \"records\": 6, \"host\": \"a\", \"stages\": {\"other\": {\"s\": 0}, \"sort\": {\"s\": 1}}}";
    char *text = shown(report_compare_text, whole, faster), *page = shown(report_compare_html, whole, faster);
    check_row(text, "wall time, s", "2.00", "1.50", "0.75");
    check_row(text, "sort", "0.50", "1.00", "2.00");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_are_not_those_of_the_text),
        cmocka_unit_test(test_what_is_no_json_is_taken),
        cmocka_unit_test(test_long_keys_and_numbers_run_over),
        cmocka_unit_test(test_file_of_another_program_is_compared),
        cmocka_unit_test(test_ratio_is_of_other_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
