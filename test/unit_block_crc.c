/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include "codec/block_crc.h"

static void test_crc_is_not_that_of_gzip(void **state)
{
    (void)state;
    assert_true(block_crc((const uint8_t *)"123456789", 9) == 0xcbf43926);
    assert_true(block_crc((const uint8_t *)"", 0) == 0);
}

/* Vectors take 256 bytes at once; the rest has every size. */
static void test_versions_disagree(void **state)
{
    (void)state;
    enum { MAX = 0x10000, MANY = 1500 };
    uint8_t *data = must_alloc(MAX);
    uint64_t random = 1;
    unit_fill(&random, data, MAX);
    for (uint32_t n = 0; n <= MAX; n += n < MANY ? 1 : 499) {
        const uint8_t *bytes = data + MAX - n;
        assert_true(block_crc(bytes, n) == block_crc_portable(bytes, n));
    }
    assert_true(block_crc(data, MAX) == block_crc_portable(data, MAX));
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crc_is_not_that_of_gzip),
        cmocka_unit_test(test_versions_disagree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
