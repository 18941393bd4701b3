/* SPDX-License-Identifier: MIT */
/* Names of files as htslib reads them. */
#include <stdlib.h>
#include "base/input_name.h"
#include "unit.h"

static void test_urls_of_local_files_are_not_their_paths(void **state)
{
    (void)state;
    static const char *const same[] = {"in.bam", "/in.bam", "file:in.bam", "file:/in.bam", "file://in.bam", "FILE:///in.bam",
                                       "file://LOCALHOST/in.bam", "file://localhost", "file://localhostess/in.bam", "", "-",
                                       "http://file:///in.bam"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        assert_string_equal(input_name_local(same[i]), same[i]);
    assert_string_equal(input_name_local("file:///in.bam"), "/in.bam");
    assert_string_equal(input_name_local("file://localhost/in.bam"), "/in.bam");
}

static void test_what_is_not_the_input_stays_in_its_name(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"in.bam", "in.bam"}, {"in.bam##idx##in.bai", "in.bam"}, {"in.bam##idx##", "in.bam"}, {"##idx##x", ""},
        {"-##idx##x", "-"}, {"preload:in.bam", "in.bam"}, {"preload:preload:x", "x"}, {"a.preload:x", "a.preload:x"},
        {"preload:file:///in.bam##idx##x", "/in.bam"}, {"in.bam##idx#", "in.bam##idx#"}, {"http://x/y.bam##idx##z", "http://x/y.bam"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *name = input_name_file(cases[i][0]);
        assert_string_equal(name, cases[i][1]);
        free(name);
    }
}

static void test_file_with_a_colon_is_taken_for_a_url(void **state)
{
    (void)state;
    static const char *const files[] = {"out.bam", "chr1:100-200.bam", "a b:c.bam", ":x", "://x", "-", "", "x:/y", "/http://x"};
    static const char *const urls[] = {"http://x/y", "s3://x/y", "gs://x", "file:x", "data:x", "mem:x", "preload:x", "ftp://x"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        assert_false(input_name_is_url(files[i]));
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++)
        assert_true(input_name_is_url(urls[i]));
}

static void test_what_is_read_only_once_is_no_file(void **state)
{
    (void)state;
    static const char *const streams[] = {"-", "/dev/null", "/tmp", "http://x/y", "data:x"};
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
        assert_true(input_name_is_stream(streams[i]));
    assert_false(input_name_is_stream("/proc/self/exe"));
    assert_true(input_name_is_file("/proc/self/exe"));
    assert_false(input_name_is_stream("/is/not/there"));     /* and it is not a file */
    assert_false(input_name_is_file("/is/not/there"));
    assert_false(input_name_is_file("/dev/null"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_urls_of_local_files_are_not_their_paths),
        cmocka_unit_test(test_what_is_not_the_input_stays_in_its_name),
        cmocka_unit_test(test_file_with_a_colon_is_taken_for_a_url),
        cmocka_unit_test(test_what_is_read_only_once_is_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
