/* SPDX-License-Identifier: MIT */
#include "unit.h"
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "base/byte_hash.h"

static void test_values_change_with_the_version_of_the_library(void **state)
{
    (void)state;
    static const uint8_t abc[] = {'a', 'b', 'c'};
    assert_true(byte_hash(abc, 0, 0) == 0x2d06800538d394c2);
    assert_true(byte_hash(abc, 3, 0) == 0x78af5f94892f3950);
}

/* Sizes take one of five ways, the longest in blocks of 1024 bytes; ends lie everywhere in a stripe of 64. */
static void test_versions_disagree(void **state)
{
    (void)state;
    enum { MAX = 70000 };
    static const uint64_t seeds[] = {0, 1, 0x9e3779b97f4a7c15};
    uint8_t *data = must_alloc(MAX);
    uint64_t random = 1;
    unit_fill(&random, data, MAX);
    for (size_t n = 0; n <= MAX; n++) {
        const uint8_t *bytes = data + MAX - n;
        uint64_t seed = seeds[n % N_OF(seeds)];
        assert_true(byte_hash(bytes, n, seed) == XXH3_64bits_withSeed(bytes, n, seed));
    }
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_change_with_the_version_of_the_library),
        cmocka_unit_test(test_versions_disagree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
