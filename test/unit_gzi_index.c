/* SPDX-License-Identifier: MIT */
/* The .gzi index: a written index can be read again, a damaged one is refused, and a place is found in it. */
#include "unit.h"
#include <fcntl.h>
#include <stdlib.h>
#include "base/endian_io.h"
#include "base/latch.h"
#include "bgzip/gzi_index.h"

enum { MOST = 9000 };            /* pairs: more than are written at once */

static void test_index_changes_in_a_file(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 4095, 4096, 4097, MOST};
    for (size_t k = 0; k < N_OF(sizes); k++) {
        struct latch latch = {0};
        struct gzi_index made = {0}, got;
        char path[] = "/tmp/unit-XXXXXX";
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        for (uint64_t i = 0; i < sizes[k]; i++)
            assert_int_equal(gzi_index_add(&made, (struct gzi_place){i * 7 + 1, i << 32}), 0);
        assert_int_equal(gzi_index_write(&made, fd, path, &latch), 0);
        assert_int_equal(lseek(fd, 0, SEEK_CUR), 8 + 16 * sizes[k]);
        close(fd);
        assert_int_equal(gzi_index_read(&got, path, &latch), 0);
        assert_int_equal(got.n, sizes[k]);
        for (size_t i = 0; i < got.n; i++)
            assert_memory_equal(&got.places[i], &made.places[i], sizeof *got.places);
        gzi_index_free(&made);
        gzi_index_free(&got);
        unlink(path);
        assert_int_equal(gzi_index_read(&got, path, &latch), -1);
        assert_non_null(strstr(latch.message, path));
    }
}

static void test_damaged_index_is_taken(void **state)
{
    (void)state;
    static const struct { size_t n; uint64_t words[7]; bool good; } cases[] = {
        {0, {0}, false}, {1, {0}, true}, {1, {1}, false}, {2, {0, 0}, false}, {3, {1, 5, 0}, true}, {3, {1, 0, 5}, false},
        {5, {2, 5, 9, 5, 10}, false}, {5, {2, 5, 9, 6, 8}, false}, {5, {2, 5, 9, 6, 9}, true}, {5, {3, 5, 9, 6, 9}, false},
        {3, {UINT64_MAX, 5, 0}, false}, {3, {1ull << 60 | 1, 5, 0}, false}, {3, {1, 1ull << 63, 0}, false},
        {3, {1, 5, 1ull << 63}, false}};
    for (size_t k = 0; k < N_OF(cases); k++) {
        struct gzi_index index;
        uint8_t bytes[sizeof cases[k].words];
        for (size_t i = 0; i < cases[k].n; i++)
            store_le64(bytes + 8 * i, cases[k].words[i]);
        assert_int_equal(!gzi_index_parse(&index, bytes, 8 * cases[k].n), cases[k].good);
        assert_int_equal(index.n, cases[k].good ? cases[k].words[0] : 0);
        gzi_index_free(&index);
        assert_non_null(gzi_index_parse(&index, bytes, 8 * cases[k].n + 1));
    }
}

static void test_place_is_found_in_another_block(void **state)
{
    (void)state;
    struct gzi_place places[] = {{10, 100}, {20, 200}, {25, 200}, {30, 300}};
    struct gzi_index index = {.places = places, .n = N_OF(places)}, none = {0};
    static const struct { uint64_t data, file; } cases[] = {{0, 0}, {99, 0}, {100, 10}, {199, 10}, {200, 25}, {299, 25}, {300, 30},
                                                            {UINT64_MAX, 30}};
    for (size_t k = 0; k < N_OF(cases); k++) {
        assert_int_equal(gzi_index_find(&index, cases[k].data).file, cases[k].file);
        assert_int_equal(gzi_index_find(&none, cases[k].data).file, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_index_changes_in_a_file),
        cmocka_unit_test(test_damaged_index_is_taken),
        cmocka_unit_test(test_place_is_found_in_another_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
