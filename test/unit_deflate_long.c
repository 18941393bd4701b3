/* SPDX-License-Identifier: MIT */
/* Moves of Nanopore reads, zeros and ones: they inflate to the input, and need no more than with libdeflate. Blocks of
 * only QUAL, and blocks that must not be mistaken for them, or for long reads. */
#include "unit.h"
#include <libdeflate.h>
#include <math.h>
#include "base/endian_io.h"
#include "codec/bam_deflate.h"
#include "long_reads.h"

enum { MAX = BAM_DEFLATE_MAX, STORED = 5, MAX_DIST = 32768 };

static uint8_t in[MAX], out[MAX + STORED], other[MAX + STORED], back[MAX];
static uint64_t seed;

static uint32_t rnd(uint32_t below) { return unit_below(&seed, below); }

static void make_moves(uint8_t *to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = rnd(20) < 9;
}

/* Deflates in[n] at the default level, with and without the instructions of newer CPUs, from memory that ends after it.
 * Returns the size. */
static size_t round_trip(size_t n)
{
    uint8_t *exact = must_alloc(n);
    size_t size = 0;
    memcpy(exact, in, n);
    for (int portable = 0; portable < 2; portable++) {
        struct bam_deflate *d = bam_deflate_new(BAM_DEFLATE_DEFAULT, portable);
        struct libdeflate_decompressor *inflater = libdeflate_alloc_decompressor();
        MUST(d && inflater);
        uint8_t *to = portable ? other : out;
        size = bam_deflate(d, exact, n, to, n + STORED);
        assert_int_equal(libdeflate_deflate_decompress(inflater, to, size, back, n, NULL), LIBDEFLATE_SUCCESS);
        assert_memory_equal(back, in, n);
        libdeflate_free_decompressor(inflater);
        free(d);
    }
    assert_memory_equal(out, other, size);
    free(exact);
    return size;
}

static void test_moves_alone_are_smaller_than_at_level_7(void **state)
{
    (void)state;
    struct libdeflate_compressor *theirs = libdeflate_alloc_compressor(7);
    MUST(theirs);
    seed = 1;
    for (size_t n = MAX; n > MAX / 2; n -= 9973) {
        make_moves(in, n);
        size_t most = libdeflate_deflate_compress(theirs, in, n, other, sizeof other) * 999 / 1000;
        assert_in_range(round_trip(n), 1, most);
    }
    libdeflate_free_compressor(theirs);
}

static void test_any_number_of_moves_comes_back(void **state)
{
    (void)state;
    seed = 2;
    for (size_t n = 500; n < 1200; n += n < 660 ? 1 : 37) {
        make_moves(in, n);
        round_trip(n);
    }
}

/* Other bytes lie anywhere between the moves, so that few or many moves are in a row. */
static void test_moves_between_others_come_back(void **state)
{
    (void)state;
    seed = 3;
    for (uint32_t row = 400; row < 20000; row += row / 4) {
        make_moves(in, MAX);
        for (size_t i = rnd(row); i < MAX; i += 1 + rnd(row))
            for (size_t k = i, end = i + 1 + rnd(row); k < MAX && k < end && row % 2; k++)
                in[k] = (uint8_t)rnd(256);
        for (size_t i = rnd(row); i < MAX; i += 1 + rnd(2 * row))
            in[i] = (uint8_t)rnd(256);
        round_trip(MAX);
    }
}

/* This data gives the most segments that are possible. */
static void test_shortest_rows_of_moves_come_back(void **state)
{
    (void)state;
    seed = 4;
    for (size_t others = 1; others <= 513; others += 256) {
        make_moves(in, MAX);
        for (size_t i = 0; i < MAX; i++)
            if (i % (512 + others) >= 512)
                in[i] = (uint8_t)(2 + rnd(254));
        round_trip(MAX);
    }
}

/* Repeats the moves, as far apart as a match may be and further, with long runs of zeros between them. */
static void test_moves_repeat_at_the_edge_of_the_window(void **state)
{
    (void)state;
    enum { REPEAT = 700 };
    size_t size[2];
    for (size_t dist = MAX_DIST - 1; dist <= MAX_DIST + 2; dist++) {
        seed = 5;
        make_moves(in, 200 + dist + REPEAT);
        size_t n = 200 + dist + REPEAT, without = round_trip(n);
        memmove(in + 200 + dist, in + 200, REPEAT);
        size[dist > MAX_DIST] = round_trip(n);
        if (dist <= MAX_DIST)
            assert_true(size[0] + 40 < without);
        else
            assert_true(size[1] + 20 > without);
        memset(in + 1000, 0, 20000);
        round_trip(n);
    }
}

static void make_bytes(uint8_t *to, size_t n, uint8_t first, uint32_t values)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (uint8_t)(first + rnd(values));
}

/* Returns the bytes that the first n bytes of `in` need if each is coded alone: their entropy. */
static double entropy(size_t n)
{
    size_t counts[256] = {0};
    double bits = 0;
    for (size_t i = 0; i < n; i++)
        counts[in[i]]++;
    for (int i = 0; i < 256; i++)
        bits -= counts[i] ? (double)counts[i] * log2((double)counts[i] / (double)n) : 0;
    return bits / 8;
}

/* Low values are frequent. A Huffman code needs .6 % more than the entropy; a rare copy saves little. */
static void test_qualities_alone_take_more_than_their_bits(void **state)
{
    (void)state;
    seed = 6;
    for (size_t i = 0; i < MAX; i++)
        in[i] = (uint8_t)(1 + rnd(50) * rnd(50) / 50);
    memcpy(in + 2500, in + 1000, 150);
    assert_in_range(round_trip(MAX), 1, (size_t)entropy(MAX) + 300);
    make_bytes(in + MAX / 3 * 2, MAX / 3, 'a', 20);            /* tags */
    round_trip(MAX);
}

static void test_text_and_repeats_are_no_qualities(void **state)
{
    (void)state;
    enum { FAR = 30000, PERIOD = 3000 };
    seed = 7;
    make_bytes(in, FAR, 'A', 26);
    for (size_t i = 70; i < FAR; i += 71)
        in[i] = '\n';
    memcpy(in + FAR, in, FAR);
    assert_in_range(round_trip(2 * FAR), 1, FAR * 5 / 8 + 2000);
    make_bytes(in, PERIOD, 2, 60);
    for (size_t i = PERIOD; i < MAX; i++)
        in[i] = in[i - PERIOD];
    assert_in_range(round_trip(MAX), 1, PERIOD + 1000);
}

/* The first record is long because of its tags, as in some NovaSeq data. So there are more fields than there is room
 * for. */
static void test_short_reads_behind_a_long_record_are_no_long_reads(void **state)
{
    (void)state;
    enum { TAG = 2300 };
    static const struct record_kind kind = {.len = 150, .levels = 4, .step = 5, .tags = TAGS_ALIGNER};
    static struct record_maker maker;
    uint8_t *genome = record_genome();
    maker = (struct record_maker){.kind = &kind, .seed = 1, .genome = genome};
    size_t n = TAG + record_block(&maker, in + TAG, MAX - TAG), first = 4 + load_le32(in + TAG);
    memmove(in, in + TAG, first);
    store_le32(in, (uint32_t)(first - 4 + TAG));
    seed = 8;
    make_bytes(in + first, TAG - 1, '0', 10);
    memcpy(in + first, "XAZ", 3);
    in[first + TAG - 1] = '\0';
    struct libdeflate_compressor *theirs = libdeflate_alloc_compressor(7);
    MUST(theirs);
    /* By their fields the short reads of this one block are 1.032. */
    assert_in_range(round_trip(n), 1, libdeflate_deflate_compress(theirs, in, n, other, sizeof other) * 1040 / 1000);
    libdeflate_free_compressor(theirs);
    free(genome);
}

/* The reads are of one stretch of 2,700 bases, one in 2 * right of which was misread. libdeflate finds the many short
 * copies. */
static void check_overlapping(uint32_t right, uint32_t levels, uint32_t per_mille)
{
    enum { BASES = 2700, SIZE = 36 + 12 + BASES / 2 + BASES };
    static uint8_t stretch[BASES / 2];
    size_t n = 0;
    seed = 8;
    for (size_t i = 0; i < sizeof stretch; i++) {
        uint32_t first = rnd(4), second = rnd(4);
        stretch[i] = (uint8_t)(1u << first << 4 | 1u << second);
    }
    for (; n + SIZE <= 65280; n += SIZE) {
        uint8_t *r = memset(in + n, 0, 36);
        store_le32(r, SIZE - 4);
        r[12] = 12;
        store_le32(r + 20, BASES);
        snprintf((char *)r + 36, 12, "r%010u", rnd(1000000));
        for (uint32_t i = 0; i < BASES / 2; i++)
            r[48 + i] = rnd(right) ? stretch[i] : (uint8_t)(0x11 << rnd(4));
        for (uint32_t i = 0; i < BASES; i++)
            r[48 + BASES / 2 + i] = (uint8_t)(3 + rnd(levels));
    }
    struct libdeflate_compressor *theirs = libdeflate_alloc_compressor(7);
    MUST(theirs);
    size_t most = libdeflate_deflate_compress(theirs, in, n, other, sizeof other) * per_mille / 1000;
    assert_in_range(round_trip(n), 1, most);
    libdeflate_free_compressor(theirs);
}

static void test_reads_that_overlap_and_differ_are_much_larger_than_at_level_7(void **state)
{
    (void)state;
    check_overlapping(30, 40, 1010);
    check_overlapping(20, 1, 1050);
}

/* Qualities are up to three from the one before: libdeflate finds matches of four bytes and more. */
static void test_qualities_in_small_steps_are_larger_than_at_level_7(void **state)
{
    (void)state;
    enum { BASES = 9000, LEVELS = 40, N = 60000 };
    uint64_t own = 31;
    uint8_t *reads = make_long_reads(&own, N, BASES, 1, false);
    memcpy(in, reads, N);
    seed = 3;
    for (uint32_t at = 0, size; at + 36 < N; at += size) {
        uint32_t bases = load_le32(in + at + 20), qual = at + 36 + in[at + 12] + (bases + 1) / 2, level = 20;
        size = 4 + load_le32(in + at);
        for (uint32_t x = qual; x < qual + bases && x < N; x++) {
            uint32_t next = level + rnd(7);
            level = next < 3 ? 0 : next > LEVELS + 3 ? LEVELS : next - 3;
            in[x] = (uint8_t)(1 + level);
        }
        for (uint32_t x = qual + bases; x < at + size && x < N; x++)
            in[x] = 'a';
    }
    struct libdeflate_compressor *theirs = libdeflate_alloc_compressor(7);
    MUST(theirs);
    size_t most = libdeflate_deflate_compress(theirs, in, N, other, sizeof other) * 103 / 100;
    assert_in_range(round_trip(N), 1, most);
    libdeflate_free_compressor(theirs);
    free(reads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_that_overlap_and_differ_are_much_larger_than_at_level_7),
        cmocka_unit_test(test_qualities_in_small_steps_are_larger_than_at_level_7),
        cmocka_unit_test(test_moves_alone_are_smaller_than_at_level_7),
        cmocka_unit_test(test_any_number_of_moves_comes_back),
        cmocka_unit_test(test_moves_between_others_come_back),
        cmocka_unit_test(test_shortest_rows_of_moves_come_back),
        cmocka_unit_test(test_moves_repeat_at_the_edge_of_the_window),
        cmocka_unit_test(test_qualities_alone_take_more_than_their_bits),
        cmocka_unit_test(test_text_and_repeats_are_no_qualities),
        cmocka_unit_test(test_short_reads_behind_a_long_record_are_no_long_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
