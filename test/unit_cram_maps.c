/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include "hts/cram_maps.h"

/* A number of up to 2 bytes. */
static void put_itf8(struct unit_bytes *b, uint32_t v)
{
    if (v >= 128)
        *unit_more(b, 1) = (uint8_t)(0x80 | v >> 8);
    *unit_more(b, 1) = (uint8_t)v;
}

static void put_map(struct unit_bytes *to, uint32_t entries, struct unit_bytes *map)
{
    put_itf8(to, (uint32_t)map->n + 1);
    put_itf8(to, entries);
    unit_append(to, map->data, map->n);
    unit_free(map);
}

static void put_series(struct unit_bytes *map, const char *name, uint32_t n_name, uint32_t codec, uint32_t length)
{
    unit_append(map, name, n_name);
    put_itf8(map, codec);
    put_itf8(map, length);
    memset(unit_more(map, length), 7, length);
}

/* The number that htslib may leave out. */
enum number {NO_NUMBER, TD_LENGTH, TAG_NAME};

static struct unit_bytes maps(enum number missing)
{
    struct unit_bytes all = {NULL, 0, 0}, map = {NULL, 0, 0};
    unit_append(&map, "RN\1SM\33\33\33\33\33AP\1TD", 15);
    if (missing != TD_LENGTH)
        put_itf8(&map, 200);
    memset(unit_more(&map, 200), 'C', 200);
    unit_append(&map, "RR\0", 3);
    put_map(&all, 5, &map);
    put_series(&map, "BF", 2, 1, 1);
    put_series(&map, "QS", 2, 130, 300);
    put_series(&map, "TL", 2, 3, 0);
    put_map(&all, 3, &map);
    put_series(&map, "\xe0MCZ", 4, 4, 20);
    put_series(&map, "\xe0XTC", missing == TAG_NAME ? 0 : 4, 1, 9);
    put_map(&all, 2, &map);
    return all;
}

/* Makes a block at the start of a container, with other bytes after it. */
static struct unit_bytes block_of(uint8_t method, uint8_t type, const struct unit_bytes *maps)
{
    struct unit_bytes b = {NULL, 0, 0};
    *unit_more(&b, 1) = method;
    *unit_more(&b, 1) = type;
    put_itf8(&b, 0);
    put_itf8(&b, (uint32_t)maps->n);
    put_itf8(&b, (uint32_t)maps->n);
    unit_append(&b, maps->data, maps->n);
    memset(unit_more(&b, 9), 0xee, 9);
    return b;
}

static bool whole(uint8_t method, uint8_t type, const struct unit_bytes *maps)
{
    struct unit_bytes b = block_of(method, type, maps);
    uint8_t *exact = exact_copy(b.data, b.n);
    bool is = cram_maps_whole(exact, b.n);
    free(exact);
    unit_free(&b);
    return is;
}

static void test_sound_maps_are_refused(void **state)
{
    (void)state;
    struct unit_bytes m = maps(NO_NUMBER);
    struct unit_bytes empty = {(uint8_t *)"\1\0\1\0\1\0", 6, 6};     /* maps of the container at the end */
    assert_true(whole(0, 1, &m));
    assert_true(whole(0, 1, &empty));
    unit_free(&m);
}

static void test_missing_number_passes(void **state)
{
    (void)state;
    for (enum number n = TD_LENGTH; n <= TAG_NAME; n++) {
        struct unit_bytes m = maps(n);
        assert_false(whole(0, 1, &m));
        unit_free(&m);
    }
    struct unit_bytes m = maps(NO_NUMBER);
    m.n--;
    for (size_t i = 0; i <= m.n; i++) {
        uint8_t gone = m.data[i];
        memmove(m.data + i, m.data + i + 1, m.n - i);
        assert_false(whole(0, 1, &m));
        memmove(m.data + i + 1, m.data + i, m.n - i);
        m.data[i] = gone;
    }
    unit_free(&m);
}

static void test_what_cannot_be_told_is_refused(void **state)
{
    (void)state;
    struct unit_bytes m = maps(TAG_NAME), b = block_of(0, 1, &m);
    assert_true(whole(1, 1, &m));                /* compressed */
    assert_true(whole(0, 2, &m));                /* a slice */
    for (size_t n = 0; n < b.n - 9; n++) {
        uint8_t *exact = exact_copy(b.data, n);
        assert_true(cram_maps_whole(exact, n));
        free(exact);
    }
    unit_free(&m);
    unit_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sound_maps_are_refused),
        cmocka_unit_test(test_missing_number_passes),
        cmocka_unit_test(test_what_cannot_be_told_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
