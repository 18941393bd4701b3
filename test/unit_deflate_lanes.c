/* SPDX-License-Identifier: MIT */
/* The default level, for any bytes: vector and scalar code write the same, it inflates to the input, and it is
 * small. */
#include "unit.h"
#include <libdeflate.h>
#include "codec/bam_deflate.h"
#include "record_kinds.h"

enum { MAX = BAM_DEFLATE_MAX, STORED = 5, PART = 8192 };   /* the last: some size that parts of a block may have */

static uint8_t in[MAX], out[MAX + STORED], other[MAX + STORED], back[MAX];
static struct bam_deflate *vector, *scalar;
static struct libdeflate_decompressor *inflater;
static uint64_t seed;

static uint32_t rnd(uint32_t below) { return unit_below(&seed, below); }
static uint32_t min_of(uint32_t a, uint32_t b) { return a < b ? a : b; }

static int set_up(void **state)
{
    (void)state;
    vector = bam_deflate_new(BAM_DEFLATE_DEFAULT, false);
    scalar = bam_deflate_new(BAM_DEFLATE_DEFAULT, true);
    inflater = libdeflate_alloc_decompressor();
    return !vector || !scalar || !inflater;
}

static int tear_down(void **state)
{
    (void)state;
    free(vector);
    free(scalar);
    libdeflate_free_decompressor(inflater);
    return 0;
}

/* Deflates in[n] with both, from memory that ends after it. Returns the size. */
static size_t deflate_both(size_t n)
{
    uint8_t *exact = exact_copy(in, n);
    size_t size = bam_deflate(vector, exact, n, out, n + STORED);
    assert_in_range(size, 1, n + STORED);
    assert_int_equal(bam_deflate(scalar, exact, n, other, n + STORED), size);
    assert_memory_equal(out, other, size);
    assert_int_equal(libdeflate_deflate_decompress(inflater, out, size, back, n, NULL), LIBDEFLATE_SUCCESS);
    assert_memory_equal(back, in, n);
    free(exact);
    return size;
}

static void test_vector_and_scalar_write_other_bytes_of_records(void **state)
{
    (void)state;
    static struct record_maker maker;
    uint8_t *genome = record_genome();
    for (size_t k = 0; k < N_OF(record_kinds); k++) {
        maker = (struct record_maker){.kind = &record_kinds[k], .seed = 1, .genome = genome};
        size_t n = record_block(&maker, in, 65280);
        deflate_both(n);
        deflate_both(n / 3);
    }
    free(genome);
}

/* Fills in[n] with random pieces, runs, and copies of earlier bytes. */
static void fill_with_pieces(uint32_t n)
{
    for (uint32_t at = 0; at < n;) {
        uint32_t len = min_of(1 + rnd(rnd(3) ? 40 : 3000), n - at), kind = rnd(4), low = rnd(200), span = 1 + rnd(50);
        uint32_t dist = at ? 1 + rnd(rnd(3) ? min_of(at, 300) : at) : 0;
        for (uint32_t i = 0; i < len; i++)
            in[at + i] = kind > 1 && dist ? in[at + i - dist] : (uint8_t)(kind ? low + rnd(span) : rnd(256));
        at += len;
    }
}

static void test_vector_and_scalar_write_other_bytes_of_any_data(void **state)
{
    (void)state;
    for (uint32_t i = 1; i < 300; i++) {
        seed = i;
        uint32_t n = 1 + rnd(i % 16 ? 3000 : MAX);
        fill_with_pieces(n);
        deflate_both(n);
    }
}

static void test_some_size_does_not_come_back(void **state)
{
    (void)state;
    seed = 7;
    fill_with_pieces(MAX);
    for (uint32_t n = 1; n < 1200; n += 1 + n / 90)
        deflate_both(n);
    for (uint32_t n = PART; n < MAX; n += 5003)
        deflate_both(n);
    deflate_both(MAX);
}

/* Literals of eight bits in all of the block have the largest possible costs. */
static void test_costs_of_random_bytes_overflow(void **state)
{
    (void)state;
    enum { OTHERS = 300 };
    seed = 3;
    unit_fill(&seed, in, MAX);
    assert_in_range(deflate_both(MAX), MAX, MAX + STORED);
    memset(in, 'A', MAX);
    for (uint32_t i = 0; i < OTHERS; i++)
        in[rnd(MAX)] = (uint8_t)rnd(256);
    assert_in_range(deflate_both(MAX), OTHERS, 6 * OTHERS);
}

/* The first positions of each copy find newer texts, of eight bytes. Only its last positions find the copied text. */
static void test_copy_is_not_found_behind_newer_texts(void **state)
{
    (void)state;
    enum { LEN = 14, NEWER = 6, EACH = 1000, COPIES = 60, SAVED = COPIES * (LEN - NEWER) / 2 };
    size_t sizes[2];
    for (int copied = 0; copied < 2; copied++) {
        seed = 5;
        for (uint32_t i = 0; i < COPIES * EACH; i++)
            in[i] = (uint8_t)(33 + rnd(64));
        for (uint32_t c = 0; c < COPIES; c++) {
            uint8_t *text = in + c * EACH;
            for (uint32_t k = 0; k < NEWER; k++)
                memcpy(text + 300 + 40 * k, text + k, 8);
            if (copied)
                memcpy(text + 900, text, LEN);
        }
        sizes[copied] = deflate_both(COPIES * EACH);
    }
    assert_in_range(sizes[1], 1, sizes[0] - SAVED);
}

/* Fills in[n] with random bytes of 64 values. */
static void fill_with_texts(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        in[i] = (uint8_t)(33 + rnd(64));
}

/* The input ends with a copy of its beginning, of any length. */
static void test_match_leads_beyond_the_input(void **state)
{
    (void)state;
    enum { TEXT = 300 };
    seed = 11;
    fill_with_texts(TEXT);
    memcpy(in + TEXT, in, TEXT);
    for (uint32_t len = 40; len <= TEXT; len++)
        deflate_both(TEXT + len);
}

/* A text is followed by COPIES copies of it, one after another. */
static void test_long_copies_are_cut_into_more_matches_than_needed(void **state)
{
    (void)state;
    enum { TEXT = 3000, COPIES = 15, MATCHES = COPIES * (TEXT / 258 + 1) };
    size_t sizes[2];
    seed = 9;
    fill_with_texts(TEXT);
    for (int copied = 0; copied < 2; copied++) {
        for (uint32_t c = 1; c <= COPIES; c++)
            memcpy(in + c * TEXT, in, TEXT);
        sizes[copied] = deflate_both(copied ? TEXT * (COPIES + 1) : TEXT);
    }
    assert_in_range(sizes[1], 1, sizes[0] + 4 * MATCHES);
}

/* Each text is there three times, the second time only its beginning. The third must be one match of the first. */
static void test_newer_beginning_cuts_a_match_in_two(void **state)
{
    (void)state;
    enum { LEN = 250, NEWER = 170, EACH = 1000, TEXTS = 60, MATCH = 5 };
    size_t sizes[2];
    for (int copied = 0; copied < 2; copied++) {
        seed = 5;
        fill_with_texts(TEXTS * EACH);
        for (uint32_t c = 0; c < TEXTS; c++) {
            uint8_t *text = in + c * EACH;
            memcpy(text + 300, text, NEWER);
            if (copied)
                memcpy(text + 600, text, LEN);
            else
                memset(text + 600, text[0], LEN);
        }
        sizes[copied] = deflate_both(TEXTS * EACH);
    }
    assert_in_range(sizes[1], 1, sizes[0] + TEXTS);
}

/* The middle of a text is found again in a copy of it, where the text itself is beyond the window. */
static void test_middle_of_a_long_copy_is_unknown(void **state)
{
    (void)state;
    enum { LEN = 1000, FROM = 500, PART_LEN = 400, TEXTS = 15, AGAIN = 25000, THIRD = 48000 };
    size_t sizes[2];
    for (int copied = 0; copied < 2; copied++) {
        seed = 11;
        fill_with_texts(MAX);
        for (uint32_t c = 0; c < TEXTS; c++) {
            memcpy(in + AGAIN + c * LEN, in + c * LEN, LEN);
            if (copied)
                memcpy(in + THIRD + c * LEN, in + c * LEN + FROM, PART_LEN);
        }
        sizes[copied] = deflate_both(MAX);
    }
    assert_in_range(sizes[1], 1, sizes[0] - TEXTS * PART_LEN / 2);
}

/* Matches are 258 bytes at most: one to three bytes may be left of a long copy, then its last byte comes again. */
static void test_runs_behind_long_copies_are_other_bytes(void **state)
{
    (void)state;
    enum { TEXT = 2000, LONGEST = 800, RUN = 20, BLOCKS = 40 };
    for (uint32_t i = 1; i <= BLOCKS; i++) {
        uint32_t n = TEXT;
        seed = i;
        for (uint32_t k = 0; k < TEXT; k++)
            in[k] = (uint8_t)rnd(4);
        while (n + LONGEST + RUN < MAX) {
            uint32_t len = 150 + rnd(LONGEST - 150), run = 4 + rnd(RUN - 4);
            memcpy(in + n, in + rnd(TEXT - LONGEST), len);
            memset(in + n + len, in[n + len - 1], run);
            n += len + run;
        }
        deflate_both(n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vector_and_scalar_write_other_bytes_of_records),
        cmocka_unit_test(test_vector_and_scalar_write_other_bytes_of_any_data),
        cmocka_unit_test(test_some_size_does_not_come_back),
        cmocka_unit_test(test_costs_of_random_bytes_overflow),
        cmocka_unit_test(test_copy_is_not_found_behind_newer_texts),
        cmocka_unit_test(test_match_leads_beyond_the_input),
        cmocka_unit_test(test_long_copies_are_cut_into_more_matches_than_needed),
        cmocka_unit_test(test_newer_beginning_cuts_a_match_in_two),
        cmocka_unit_test(test_middle_of_a_long_copy_is_unknown),
        cmocka_unit_test(test_runs_behind_long_copies_are_other_bytes),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
