/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include <limits.h>
#include "markdup/dup_name.h"

static struct dup_coords_rule opened(const char *regex, const char *order)
{
    struct dup_coords_rule coords_rule;
    assert_null(dup_coords_open(&coords_rule, regex, order));
    return coords_rule;
}

static void coordinates_by_colons(void **state)
{
    (void)state;
    static const struct { const char *name; enum dup_name_fault fault; long x, y; unsigned n_tile; } cases[] = {
        {"r:1:20:30", DUP_NAME_OK, 20, 30, 4},
        {"r:1:2:20:30#AC", DUP_NAME_OK, 20, 30, 6},
        {"i:1:f:2:1101:20:30", DUP_NAME_OK, 20, 30, 13},
        {"i:1:f:2:1101:20:30:ACGT", DUP_NAME_OK, 20, 30, 13},
        {"i:1:f:2:1101:20", DUP_NAME_UNLIKE, 0, 0, 0},
        {"i:1:f:2:1101:20:30:A:C", DUP_NAME_UNLIKE, 0, 0, 0},
        {"r20", DUP_NAME_UNLIKE, 0, 0, 0},
        {"r:1:x:30", DUP_NAME_NO_X, 0, 0, 0},
        {"r:1:20:", DUP_NAME_NO_Y, 0, 0, 0},
        {"r:1: -20z:+30", DUP_NAME_OK, -20, 30, 4},
    };
    struct dup_coords_rule coords_rule = opened(NULL, NULL);
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct dup_coords coords = {0};
        assert_int_equal(dup_coords_read(&coords_rule, cases[i].name, &coords), cases[i].fault);
        if (cases[i].fault)
            continue;
        assert_int_equal(coords.x, cases[i].x);
        assert_int_equal(coords.y, cases[i].y);
        assert_int_equal(coords.n_tile, cases[i].n_tile);
    }
    dup_coords_close(&coords_rule);
}

static void coordinates_by_expression(void **state)
{
    (void)state;
    struct dup_coords coords;
    struct dup_coords_rule coords_rule = opened("^([a-z]*)([0-9]+)/([0-9x]*)", NULL);
    assert_int_equal(dup_coords_read(&coords_rule, "ab12/345x", &coords), DUP_NAME_OK);
    assert_int_equal(coords.x, 12);
    assert_int_equal(coords.y, 345);
    assert_int_equal(coords.n_tile, 2);
    assert_int_equal(dup_coords_read(&coords_rule, "ab12/x", &coords), DUP_NAME_NO_Y);
    assert_int_equal(dup_coords_read(&coords_rule, "12", &coords), DUP_NAME_NO_MATCH);
    dup_coords_close(&coords_rule);
    coords_rule = opened("^([0-9]+)/([0-9]+)/(.)", "xyt");
    assert_int_equal(dup_coords_read(&coords_rule, "1/2/34", &coords), DUP_NAME_OK);
    assert_int_equal(coords.x, 1);
    assert_int_equal(coords.y, 2);
    assert_int_equal(coords.tile, 4);
    assert_int_equal(coords.n_tile, 1);
    dup_coords_close(&coords_rule);
    coords_rule = opened("^([0-9]+)/([0-9]+)", "xy");
    assert_int_equal(dup_coords_read(&coords_rule, "1/2", &coords), DUP_NAME_OK);
    assert_int_equal(coords.n_tile, 0);
    dup_coords_close(&coords_rule);
    assert_non_null(dup_coords_open(&coords_rule, "(", NULL));
    assert_non_null(dup_coords_open(&coords_rule, NULL, "yxx"));
}

static void near_means_tile_and_both_coordinates(void **state)
{
    (void)state;
    struct dup_coords_rule coords_rule = opened(NULL, NULL);
    static const char *const names[] = {"a:1:1:100:100", "a:1:1:110:90", "a:1:1:111:100", "a:1:1:100:89",
                                        "a:1:2:100:100", "a:1:11:100:100"};
    struct dup_coords coords[N_OF(names)];
    for (size_t i = 0; i < N_OF(names); i++)
        assert_int_equal(dup_coords_read(&coords_rule, names[i], &coords[i]), DUP_NAME_OK);
    for (size_t i = 0; i < N_OF(names); i++)
        assert_int_equal(dup_coords_are_near(names[0], &coords[0], names[i], &coords[i], 10), i < 2);
    struct dup_coords low = coords[0], high = coords[0];
    low.x = LONG_MIN;
    high.x = LONG_MAX;
    assert_false(dup_coords_are_near(names[0], &low, names[0], &high, 10));
    dup_coords_close(&coords_rule);
}

static void barcodes(void **state)
{
    (void)state;
    regex_t regex;
    int n;
    assert_int_equal(regcomp(&regex, DUP_BARCODE_NAME, REG_EXTENDED), 0);
    const char *name = "i:1:f:2:1101:20:30:ACGT";
    assert_ptr_equal(dup_barcode_find(&regex, 2, name, &n), name + 19);
    assert_int_equal(n, 4);
    assert_null(dup_barcode_find(&regex, 2, "i:1:f:2:1101:20:30", &n));
    assert_null(dup_barcode_find(&regex, 2, "i:1:f:2:11-01:20:30:ACGT", &n));
    regfree(&regex);
    assert_int_equal(dup_barcode_hash("", 0), 0);
    assert_int_equal(dup_barcode_hash("a", 1), 0xca2e9442);      /* as published */
    assert_int_equal(dup_barcode_hash("The quick brown fox jumps over the lazy dog", 43), 0x519e91f5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coordinates_by_colons), cmocka_unit_test(coordinates_by_expression),
        cmocka_unit_test(near_means_tile_and_both_coordinates), cmocka_unit_test(barcodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
