/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include "codec/bgzf_block.h"
#include "write/sam_count.h"

/* Lines of some 100 bytes, plain or in blocks with the empty one at the end. */
static struct unit_bytes text_of(int n, bool blocks, uint32_t size)
{
    struct unit_bytes text = {NULL, 0, 0}, out = {NULL, 0, 0};
    uint64_t seed = 9;
    for (int i = 0; i < n; i++) {
        uint32_t length = unit_below(&seed, 200);
        memset(unit_more(&text, length), 'a' + i % 26, length);
        unit_append(&text, "\n", 1);
    }
    if (!blocks)
        return text;
    struct bgzf_codec *codec = bgzf_codec_new(1);
    NEEDED(codec);
    uint8_t *block = unit_alloc(BGZF_MAX_BLOCK);
    for (size_t at = 0; at < text.n; at += size)
        unit_append(&out, block, bgzf_block_deflate(codec, text.data + at,
                                                    text.n - at < size ? (uint32_t)(text.n - at) : size, block));
    unit_append(&out, bgzf_block_eof, BGZF_EOF_SIZE);
    free(block);
    bgzf_codec_free(codec);
    unit_free(&text);
    return out;
}

/* Whether there are n lines, fed in such pieces. */
static bool agrees(const uint8_t *bytes, size_t size, bool blocks, size_t piece, uint64_t n)
{
    struct sam_count c;
    assert_int_equal(sam_count_start(&c, blocks), 0);
    for (size_t at = 0; at < size; at += piece) {
        size_t part = piece < size - at ? piece : size - at;
        uint8_t *exact = unit_exact(bytes + at, part);
        sam_count_feed(&c, exact, part);
        free(exact);
    }
    bool all = sam_count_agrees(&c, n);
    sam_count_free(&c);
    return all;
}

static void test_lines_depend_on_how_they_are_cut(void **state)
{
    (void)state;
    enum { N = 5000 };
    for (int way = 0; way < 3; way++) {
        struct unit_bytes b = text_of(N, way > 0, way == 1 ? 777 : BGZF_FILL);
        for (size_t piece = 1; piece < 3 * b.n; piece = 3 * piece + 1) {
            assert_true(agrees(b.data, b.n, way > 0, piece, N));
            assert_true(agrees(b.data, b.n, way > 0, piece, N - 1));
            assert_false(agrees(b.data, b.n, way > 0, piece, N + 1));
        }
        unit_free(&b);
    }
}

static void test_damaged_or_cut_blocks_agree(void **state)
{
    (void)state;
    struct unit_bytes b = text_of(100, true, 1000);
    uint64_t seed = 1;
    unsigned refused = 0;
    for (int i = 0; i < 1000; i++) {
        size_t bit = unit_below(&seed, 8 * (uint32_t)b.n);
        b.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        refused += !agrees(b.data, b.n, true, b.n, 100);
        b.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_true(refused > 800);                  /* times and the like in headers do not matter */
    for (size_t n = 0; n < b.n - BGZF_EOF_SIZE; n++)
        assert_false(agrees(b.data, n, true, b.n, 100));
    assert_false(agrees(b.data, b.n - 1, true, b.n, 100));
    unit_append(&b, "garbage", 7);
    assert_false(agrees(b.data, b.n, true, b.n, 100));
    unit_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_depend_on_how_they_are_cut),
        cmocka_unit_test(test_damaged_or_cut_blocks_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
