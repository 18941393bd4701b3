/* SPDX-License-Identifier: MIT */
#include <sys/stat.h>
#include "base/temp_prefix.h"
#include "unit.h"

static void files_of_a_directory_lie_beside_it(void **state)
{
    char dir[] = "/tmp/unit_temp_prefix.XXXXXX", name[PATH_MAX], in[PATH_MAX];
    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_string_equal(temp_prefix_ending(dir), "/samtools-sort");
    assert_string_equal(temp_prefix_directory(dir, in), dir);
    snprintf(name, sizeof name, "%s/", dir);
    assert_string_equal(temp_prefix_directory(name, in), name);
    snprintf(name, sizeof name, "%s/name", dir);
    assert_string_equal(temp_prefix_ending(name), "");
    assert_string_equal(temp_prefix_directory(name, in), dir);
    assert_int_equal(rmdir(dir), 0);
    assert_string_equal(temp_prefix_ending("name"), "");
    assert_string_equal(temp_prefix_directory("name", in), ".");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(files_of_a_directory_lie_beside_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
