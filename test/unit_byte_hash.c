/* SPDX-License-Identifier: MIT */
#include "unit.h"
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "base/byte_hash.h"
#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

static void test_values_change_with_the_version_of_the_library(void **state)
{
    (void)state;
    static const uint8_t abc[] = {'a', 'b', 'c'};
    assert_true(byte_hash(abc, 0, 0) == 0x2d06800538d394c2);
    assert_true(byte_hash(abc, 3, 0) == 0x78af5f94892f3950);
}

/* Sizes take one of five ways, the longest in blocks of 1024 bytes; data end anywhere in a stripe of 64. */
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

#ifdef __x86_64__

/* Returns whether the upper halves of AVX's registers hold anything. */
__attribute__((target("xsave"))) static bool are_upper_halves_in_use(void)
{
    enum { XINUSE = 1, AVX_STATE = 1 << 2 };
    return _xgetbv(XINUSE) & AVX_STATE;
}

/* Returns whether the processor reports it. */
static bool tells_what_is_in_use(void)
{
    enum { LEAF = 0xd, XGETBV_1 = 1 << 2 };
    unsigned a = 0, b, c, d;
    return __builtin_cpu_supports("avx2") && __get_cpuid_count(LEAF, 1, &a, &b, &c, &d) && (a & XGETBV_1);
}

__attribute__((target("avx"))) static void leave_upper_halves(void)
{
    _mm256_zeroupper();
}

/* An SSE instruction that follows waits 100 cycles and more while they are in use. */
static void test_upper_halves_stay_in_use(void **state)
{
    (void)state;
    static const uint8_t data[1000];
    if (!tells_what_is_in_use())
        skip();
    leave_upper_halves();
    if (are_upper_halves_in_use())               /* reported for all processes, or always after AVX */
        skip();
    byte_hash(data, sizeof data, 0);
    assert_false(are_upper_halves_in_use());
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_change_with_the_version_of_the_library),
        cmocka_unit_test(test_versions_disagree),
#ifdef __x86_64__
        cmocka_unit_test(test_upper_halves_stay_in_use),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
