/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include "base/byte_hash.h"

static void test_values_change_with_the_version_of_the_library(void **state)
{
    (void)state;
    static const uint8_t abc[] = {'a', 'b', 'c'};
    assert_true(byte_hash(abc, 0, 0) == 0x2d06800538d394c2);
    assert_true(byte_hash(abc, 3, 0) == 0x78af5f94892f3950);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_change_with_the_version_of_the_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
