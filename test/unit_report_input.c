/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include "read/sliced_input.h"
#include "report/report.h"

enum { N = 60 };

/* A report of n inputs. */
static char *told(bool text, bool page, size_t n)
{
    struct report_input each[N];
    char *all;
    size_t size;
    FILE *to = open_memstream(&all, &size);
    struct clocks *clocks = clocks_new(1, CLOCKS_SPANS);
    struct report_facts facts = {.command_line = "", .input = "in.bam", .output = "out.bam", .version = "1",
                                 .host = {.code = "", .widest = "", .htslib = "", .libdeflate = ""},
                                 .merged = {each, n}};
    struct report r;
    MUST(to && clocks);
    for (size_t i = 0; i < n; i++)               /* 1 and 2 are waited for equally long, and so on */
        each[i] = (struct report_input){i == 1 ? "<b>" : "x", i ? 1000 + i : REPORT_UNKNOWN, 7, i,
                                        i ? 0.1 * (double)(i / 2) : 9};
    clocks_stop(clocks);
    report_make(&r, &facts, clocks);
    if (text)
        report_text(&r, to);
    else if (page)
        report_html(&r, clocks, to);
    else
        report_json(&r, clocks, to);
    fclose(to);
    clocks_free(clocks);
    return all;
}

static size_t count(const char *text, const char *word)
{
    size_t n = 0;
    while ((text = strstr(text, word))) {
        n++;
        text++;
    }
    return n;
}

static void test_sort_tells_of_inputs(void **state)
{
    (void)state;
    char *text = told(true, false, 0), *page = told(false, true, 0), *json = told(false, false, 0);
    assert_null(strstr(text, "waited, s"));
    assert_null(strstr(page, "<h2>Inputs"));
    assert_null(strstr(json, "\"inputs\""));
    free(text);
    free(page);
    free(json);
}

static void test_input_that_was_waited_for_is_left_out(void **state)
{
    (void)state;
    char *text = told(true, false, N), *page = told(false, true, N), *json = told(false, false, N);
    const char *table = strstr(page, "<h2>Inputs");
    MUST(table);
    assert_int_equal(count(text, "  x\n"), 8);
    assert_non_null(strstr(text, "              unknown                   7         0      9.00  x\n"
                                 "                1,058                   7        58      2.90  x\n"
                                 "                1,059                   7        59      2.90  x\n"));
    assert_non_null(strstr(text, "and 52 inputs"));
    assert_int_equal(count(table, "<tr><td>"), 50);
    assert_non_null(strstr(page, "And 10 more inputs"));
    assert_int_equal(count(json, "\"waits\""), N);
    assert_non_null(strstr(json, "{\"name\": \"x\", \"bytes\": null, \"records\": 7, \"waits\": 0, "
                                 "\"waited_s\": 9.000000},\n"));
    free(text);
    free(page);
    free(json);
    page = told(false, true, 2);
    assert_non_null(strstr(page, "&lt;b&gt;"));
    assert_null(strstr(page, "inputs that"));
    free(page);
}

static void test_waits_are_counted_twice(void **state)
{
    (void)state;
    struct sliced_input in = {.waits = 0};
    static const struct { bool awaited; uint64_t now; } calls[] = {{false, 3}, {true, 5}, {true, 6}, {false, 9},
                                                                 {true, 20}, {false, 21}};
    for (size_t i = 0; i < N_OF(calls); i++)
        sliced_input_await(&in, calls[i].awaited, calls[i].now);
    assert_int_equal(in.waits, 2);
    assert_int_equal(in.waited, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sort_tells_of_inputs),
        cmocka_unit_test(test_input_that_was_waited_for_is_left_out),
        cmocka_unit_test(test_waits_are_counted_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
