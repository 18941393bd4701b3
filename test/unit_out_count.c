/* SPDX-License-Identifier: MIT */
#include <htslib/hfile.h>
#include "bam/cram_count.h"
#include "base/latch.h"
#include "codec/bgzf_block.h"
#include "write/out_count.h"
#include "unit.h"

enum { N = 200 };

static const char text[] = "@HD\tVN:1.6\n@SQ\tSN:a\tLN:999\n";
static struct latch latch;
static htsFormat format;

/* What htslib writes of N records. */
static struct unit_bytes written(sam_hdr_t *header)
{
    int fd = unit_temp_file();
    char path[64];
    samFile *file = sam_open_format(unit_fd_path(path, fd), "wc", &format);
    bam1_t *record = bam_init1();
    MUST(file && record && sam_hdr_write(file, header) == 0);
    for (int i = 0; i < N; i++) {
        MUST(bam_set1(record, 2, "r", BAM_FUNMAP, -1, -1, 0, 0, NULL, -1, -1, 0, 4, "\1\2", "\1\2\3\4", 0) >= 0);
        MUST(sam_write1(file, header, record) >= 0);
    }
    MUST(hts_close(file) == 0);
    bam_destroy1(record);
    struct unit_bytes all = unit_read_file(fd);
    close(fd);
    return all;
}

/* Where the blocks of the first container of records begin. */
static size_t first_blocks(const struct unit_bytes *all)
{
    struct cram_count count;
    cram_count_start(&count, false);
    for (size_t at = 0; at < all->n && count.inside == 0; at++)
        cram_count_feed(&count, all->data + at, 1);
    MUST(count.inside > 0);
    return (size_t)count.inside;
}

static size_t itf8_size(uint8_t first)
{
    return first < 0x80 ? 1 : first < 0xc0 ? 2 : 3;
}

static int check(const struct unit_bytes *all, size_t piece, sam_hdr_t *header)
{
    struct out_count *count = out_count_new(&format);
    MUST(count);
    memset(&latch, 0, sizeof latch);
    for (size_t at = 0; at < all->n; at += piece)
        out_count_see(count, all->data + at, all->n - at < piece ? all->n - at : piece);
    int result = out_count_check(count, header, N, "the output", &latch);
    out_count_free(count);
    return result;
}

/* As htslib 1.16 writes one when memory runs out: its number of entries is not that of the entries. */
static void test_container_that_cannot_be_read_passes(void **state)
{
    (void)state;
    static const size_t pieces[] = {1, 7, 100, 1 << 20};
    MUST(hts_parse_format(&format, "cram,no_ref=1") == 0);
    sam_hdr_t *header = sam_hdr_parse(sizeof text - 1, text);
    MUST(header);
    struct unit_bytes all = written(header);
    size_t at = first_blocks(&all) + 2;          /* behind method and type */
    for (int number = 0; number < 4; number++)   /* id, two sizes, and the size of the first map */
        at += itf8_size(all.data[at]);
    for (size_t i = 0; i < N_OF(pieces); i++)
        assert_int_equal(check(&all, pieces[i], header), 0);
    all.data[at]++;
    for (size_t i = 0; i < N_OF(pieces); i++) {
        assert_int_equal(check(&all, pieces[i], header), -1);
        assert_non_null(strstr(latch.message, "container that cannot be read"));
    }
    unit_free(&all);
    sam_hdr_destroy(header);
    hts_opt_free((hts_opt *)format.specific);
}

/* ---- SAM ---- */

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
    MUST(codec);
    uint8_t *block = must_alloc(BGZF_MAX_BLOCK);
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
    htsFormat sam_format = {.format = sam, .compression = blocks ? bgzf : no_compression};
    struct out_count *c = out_count_new(&sam_format);
    sam_hdr_t *header = sam_hdr_parse(sizeof text - 1, text);
    MUST(c && header);
    memset(&latch, 0, sizeof latch);
    for (size_t at = 0; at < size; at += piece) {
        size_t part = piece < size - at ? piece : size - at;
        uint8_t *exact = exact_copy(bytes + at, part);
        out_count_see(c, exact, part);
        free(exact);
    }
    bool all = out_count_check(c, header, n - 2, "the output", &latch) == 0;    /* 2: of the header */
    assert_int_equal(all, !latch_tripped(&latch));
    sam_hdr_destroy(header);
    out_count_free(c);
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
        cmocka_unit_test(test_container_that_cannot_be_read_passes),
        cmocka_unit_test(test_lines_depend_on_how_they_are_cut),
        cmocka_unit_test(test_damaged_or_cut_blocks_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
