/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include <sys/wait.h>
#include <htslib/bgzf.h>
#include <htslib/hfile.h>
#include <libdeflate.h>
#include "codec/bgzf_block.h"

/* ---- blocks and data to measure ---- */

/* A block with the given extra field and deflate data; its BSIZE is the one in extra. */
static struct unit_bytes make_block(const void *extra, size_t n_extra, const void *deflated,
                                    size_t n, uint32_t crc, uint32_t isize)
{
    struct unit_bytes b = {NULL, 0, 0};
    unit_append(&b, bgzf_block_eof, 10);
    store_le16(unit_more(&b, 2), (uint16_t)n_extra);
    unit_append(&b, extra, n_extra);
    unit_append(&b, deflated, n);
    unit_append_le32(&b, crc);
    unit_append_le32(&b, isize);
    return b;
}

static const uint8_t empty_deflated[2] = {3, 0};
static const uint8_t plain_extra[6] = {'B', 'C', 2, 0, 27, 0};

static enum bgzf_fault frame_of(const struct unit_bytes *b, struct bgzf_frame *frame)
{
    uint8_t *exact = exact_copy(b->data, b->n);
    enum bgzf_fault fault = bgzf_block_frame(exact, b->n, frame);
    free(exact);
    return fault;
}

/* Fault of the empty block with another byte at `at`. */
static enum bgzf_fault frame_with(size_t at, uint8_t value)
{
    struct unit_bytes b = {NULL, 0, 0};
    struct bgzf_frame frame;
    unit_append(&b, bgzf_block_eof, BGZF_EOF_SIZE);
    b.data[at] = value;
    enum bgzf_fault fault = frame_of(&b, &frame);
    unit_free(&b);
    return fault;
}

enum kind { ZEROS, RANDOM, TEXT, N_KINDS };

static uint8_t *make_data(enum kind kind, size_t n, uint64_t seed)
{
    uint8_t *data = calloc(n + 1, 1);
    MUST(data);
    if (kind == RANDOM)
        unit_fill(&seed, data, n);
    for (size_t i = 0; kind == TEXT && i < n; i++)
        data[i] = "ACGTACGTTTAGGA\n"[unit_below(&seed, 15)];
    return data;
}

/* ---- frame ---- */

static void test_frame_of_a_whole_block(void **state)
{
    (void)state;
    struct unit_bytes b = {NULL, 0, 0};
    struct bgzf_frame frame;
    unit_append(&b, bgzf_block_eof, BGZF_EOF_SIZE);
    assert_int_equal(frame_of(&b, &frame), BGZF_OK);
    assert_int_equal(frame.size, BGZF_EOF_SIZE);
    assert_int_equal(frame.data_offset, BGZF_HEADER);
    assert_int_equal(frame.inflated_size, 0);
    unit_append(&b, "the next block", 14);
    assert_int_equal(frame_of(&b, &frame), BGZF_OK);
    assert_int_equal(frame.size, BGZF_EOF_SIZE);
    unit_free(&b);
}

/* Every prefix, in an allocation of its exact size, so that a sanitizer reports a read past it. */
static void test_prefix_of_any_length_asks_for_more_and_reads_no_further(void **state)
{
    (void)state;
    struct bgzf_codec *codec = bgzf_codec_new(1);
    uint8_t *data = make_data(TEXT, 1000, 1), *block = must_alloc(BGZF_MAX_BLOCK);
    uint32_t size = bgzf_block_deflate(codec, data, 1000, block);
    struct bgzf_frame frame;
    for (uint32_t n = 0; n < size; n++) {
        struct unit_bytes prefix = {block, n, n};
        assert_int_equal(frame_of(&prefix, &frame), BGZF_MORE);
    }
    struct unit_bytes whole = {block, size, size};
    assert_int_equal(frame_of(&whole, &frame), BGZF_OK);
    bgzf_codec_free(codec);
    free(data);
    free(block);
}

static void test_other_data_are_known_by_their_first_byte(void **state)
{
    (void)state;
    static const char *const other[] = {"B", "\x1f\x42", "\x1f\x8b\x42", "@HD\tVN:1.6\n",
                                        "CRAM\3\1"};
    struct bgzf_frame frame;
    for (size_t i = 0; i < N_OF(other); i++) {
        struct unit_bytes b = {(uint8_t *)(uintptr_t)other[i], strlen(other[i]), 0};
        assert_int_equal(frame_of(&b, &frame), BGZF_NOT_GZIP);
    }
    for (size_t at = 0; at < 3; at++)
        assert_int_equal(frame_with(at, 0), BGZF_NOT_GZIP);
}

static void test_gzip_without_block_sizes_is_told_apart(void **state)
{
    (void)state;
    static const uint8_t gzip[]
        = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    struct unit_bytes b = {(uint8_t *)(uintptr_t)gzip, sizeof gzip, 0};
    struct bgzf_frame frame;
    assert_int_equal(frame_of(&b, &frame), BGZF_NOT_BGZF);
    assert_int_equal(frame_with(3, 0), BGZF_NOT_BGZF);
    assert_int_equal(frame_with(3, 8), BGZF_NOT_BGZF);       /* a file name instead */
    assert_int_equal(frame_with(12, 'X'), BGZF_NOT_BGZF);    /* a subfield, but not BC */
    assert_int_equal(frame_with(13, 'X'), BGZF_NOT_BGZF);
    assert_int_equal(frame_with(14, 1), BGZF_NOT_BGZF);      /* BC of one byte */
}

/* A name, a comment and a checksum of the header may come between the extra field and the data. */
static void test_other_flags_shift_the_data_or_hide_the_block(void **state)
{
    (void)state;
    static const struct { uint8_t flags; const char *fields; size_t n; } cases[] = {
        {4 | 1, "", 0}, {4 | 0xe0, "", 0}, {4 | 2, "\1\2", 2}, {4 | 8, "a.bam", 6}, {4 | 8, "", 1}, {4 | 16, "text", 5},
        {0xff, "a\0b\0\1\2", 6},
    };
    for (size_t i = 0; i < N_OF(cases); i++) {
        uint8_t data[16];
        memcpy(data, cases[i].fields, cases[i].n);
        memcpy(data + cases[i].n, empty_deflated, 2);
        struct unit_bytes b = make_block(plain_extra, sizeof plain_extra, data, cases[i].n + 2, 0, 0);
        struct bgzf_frame frame;
        b.data[3] = cases[i].flags;
        store_le16(b.data + BGZF_HEADER - 2, (uint16_t)(b.n - 1));
        assert_int_equal(frame_of(&b, &frame), BGZF_OK);
        assert_int_equal(frame.data_offset, BGZF_HEADER + cases[i].n);
        for (size_t n = 0; n < b.n; n++) {
            struct unit_bytes prefix = {b.data, n, n};
            assert_int_equal(frame_of(&prefix, &frame), BGZF_MORE);
        }
        memset(b.data + BGZF_HEADER, 'x', b.n - BGZF_HEADER);        /* then a name has no end */
        if (cases[i].flags & (8 | 16))
            assert_int_equal(frame_of(&b, &frame), BGZF_BAD_SIZE);
        unit_free(&b);
    }
}

static void test_extra_field_cut_short(void **state)
{
    (void)state;
    struct bgzf_frame frame;
    for (size_t n = 0; n < sizeof plain_extra; n++) {
        struct unit_bytes b = make_block(plain_extra, n, empty_deflated, 2, 0, 0);
        unit_append(&b, b.data, 12);                         /* bytes to be misread */
        assert_int_equal(frame_of(&b, &frame), BGZF_NOT_BGZF);
        unit_free(&b);
    }
}

static void test_subfields_before_and_after_bc(void **state)
{
    (void)state;
    static const uint8_t extras[][20] = {
        {'X', 'Y', 0, 0, 'B', 'C', 2, 0, 0, 0}, {'X', 'Y', 3, 0, 1, 2, 3, 'B', 'C', 2, 0, 0, 0},
        {'B', 'C', 2, 0, 0, 0, 'X', 'Y', 2, 0, 9, 9}, {'B', 'C', 1, 0, 7, 'B', 'C', 2, 0, 0, 0},
        {'B', 'C', 2, 0, 0, 0, 'X'},                         /* padding that is not a subfield */
    };
    static const size_t sizes[] = {10, 13, 12, 11, 7}, bsize_at[] = {8, 11, 4, 9, 4};
    for (size_t i = 0; i < N_OF(sizes); i++) {
        struct unit_bytes b = make_block(extras[i], sizes[i], empty_deflated, 2, 0, 0);
        struct bgzf_frame frame;
        store_le16(b.data + 12 + bsize_at[i], (uint16_t)(b.n - 1));
        assert_int_equal(frame_of(&b, &frame), BGZF_OK);
        assert_int_equal(frame.size, b.n);
        assert_int_equal(frame.data_offset, 12 + sizes[i]);
        for (size_t n = 0; n < b.n; n++) {
            struct unit_bytes prefix = {b.data, n, n};
            assert_int_equal(frame_of(&prefix, &frame), BGZF_MORE);
        }
        unit_free(&b);
    }
}

static void test_subfield_that_runs_past_the_extra_field(void **state)
{
    (void)state;
    static const uint8_t extra[] = {'X', 'Y', 4, 0, 1, 'B', 'C', 2, 0};
    struct unit_bytes b = make_block(extra, sizeof extra, empty_deflated, 2, 0, 0);
    struct bgzf_frame frame;
    assert_int_equal(frame_of(&b, &frame), BGZF_NOT_BGZF);
    unit_free(&b);
    static const uint8_t huge[] = {'X', 'Y', 0xff, 0xff, 'B', 'C', 2, 0, 40, 0};
    b = make_block(huge, sizeof huge, empty_deflated, 2, 0, 0);
    assert_int_equal(frame_of(&b, &frame), BGZF_NOT_BGZF);
    unit_free(&b);
}

static void test_longest_extra_field(void **state)
{
    (void)state;
    enum { REST = 4 + 6 };                                   /* frames of the two subfields */
    struct bgzf_frame frame;
    for (uint32_t n = 65535 - 30 - REST; n <= 65535 - REST; n++) {
        struct unit_bytes extra = {NULL, 0, 0};
        unit_append(&extra, plain_extra, 4);
        store_le16(unit_more(&extra, 2), 65535);
        unit_append(&extra, "XY", 2);
        store_le16(unit_more(&extra, 2), (uint16_t)n);
        memset(unit_more(&extra, n), 'x', n);
        struct unit_bytes b = make_block(extra.data, extra.n, empty_deflated, 2, 0, 0);
        size_t room = 65536 - (12 + extra.n);
        memset(unit_more(&b, 65536), 0, 65536);
        enum bgzf_fault want
            = 12 + extra.n <= 65536 && room >= BGZF_FOOTER ? BGZF_OK : BGZF_BAD_SIZE;
        assert_int_equal(frame_of(&b, &frame), want);
        unit_free(&extra);
        unit_free(&b);
    }
}

static void test_block_smaller_than_its_own_frame(void **state)
{
    (void)state;
    for (uint8_t size = 1; size < BGZF_HEADER + BGZF_FOOTER; size++)
        assert_int_equal(frame_with(16, (uint8_t)(size - 1)), BGZF_BAD_SIZE);
    assert_int_not_equal(frame_with(16, BGZF_HEADER + BGZF_FOOTER - 1), BGZF_BAD_SIZE);
    assert_int_equal(frame_with(16, BGZF_EOF_SIZE), BGZF_MORE); /* one byte larger than the block */
}

static void test_inflated_size_beyond_a_block(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {0, 1, BGZF_FILL, 65535, 65536, 65537, 1 << 24, UINT32_MAX};
    for (size_t i = 0; i < N_OF(sizes); i++) {
        struct unit_bytes b = make_block(plain_extra, 6, empty_deflated, 2, 0, sizes[i]);
        struct bgzf_frame frame;
        assert_int_equal(frame_of(&b, &frame),
                         sizes[i] <= BGZF_MAX_BLOCK ? BGZF_OK : BGZF_BAD_ISIZE);
        if (sizes[i] <= BGZF_MAX_BLOCK)
            assert_int_equal(frame.inflated_size, sizes[i]);
        unit_free(&b);
    }
}

static void test_every_fault_has_its_words(void **state)
{
    (void)state;
    for (int i = BGZF_OK; i <= BGZF_NO_MEMORY; i++) {
        const char *text = bgzf_fault_text((enum bgzf_fault)i);
        assert_string_not_equal(text, "unknown fault");
        for (int j = BGZF_OK; j < i; j++)
            assert_string_not_equal(text, bgzf_fault_text((enum bgzf_fault)j));
    }
}

/* ---- inflate ---- */

/* Inflates a copy in an exact allocation into an exact allocation. */
static enum bgzf_fault inflate_exact(const uint8_t *block, size_t size, uint8_t **out, uint32_t *n)
{
    struct bgzf_codec *codec = bgzf_codec_new(0);
    struct bgzf_frame frame;
    uint8_t *copy = exact_copy(block, size);
    *out = NULL;
    enum bgzf_fault fault = bgzf_block_frame(copy, size, &frame);
    if (fault == BGZF_OK) {
        *n = frame.inflated_size;
        *out = must_alloc(*n);
        fault = bgzf_block_inflate(codec, copy, &frame, *out);
    }
    bgzf_codec_free(codec);
    free(copy);
    return fault;
}

static enum bgzf_fault inflate_fault(const uint8_t *block, size_t size)
{
    uint8_t *out;
    uint32_t n;
    enum bgzf_fault fault = inflate_exact(block, size, &out, &n);
    free(out);
    return fault;
}

/* A block of 1000 bytes of text; *size: of the block. */
static uint8_t *text_block(uint32_t *size)
{
    struct bgzf_codec *codec = bgzf_codec_new(6);
    uint8_t *data = make_data(TEXT, 1000, 2), *block = must_alloc(BGZF_MAX_BLOCK);
    *size = bgzf_block_deflate(codec, data, 1000, block);
    bgzf_codec_free(codec);
    free(data);
    return block;
}

static void test_wrong_crc_is_found(void **state)
{
    (void)state;
    uint32_t size;
    uint8_t *block = text_block(&size);
    assert_int_equal(inflate_fault(block, size), BGZF_OK);
    for (uint32_t bit = 0; bit < 32; bit++) {
        block[size - 8 + bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(inflate_fault(block, size), BGZF_BAD_CRC);
        block[size - 8 + bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    free(block);
}

static void test_wrong_inflated_size_is_found(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {0, 1, 999, 1001, 1500, 65536};
    uint32_t size;
    uint8_t *block = text_block(&size);
    for (size_t i = 0; i < N_OF(sizes); i++) {
        store_le32(block + size - 4, sizes[i]);
        assert_int_equal(inflate_fault(block, size), BGZF_BAD_ISIZE);
    }
    block[size - 8] ^= 1;                        /* its CRC-32: the data may as well be right */
    assert_int_equal(inflate_fault(block, size), BGZF_BAD_DEFLATE);
    free(block);
}

static void test_cut_deflate_data_are_found(void **state)
{
    (void)state;
    uint32_t size;
    uint8_t *block = text_block(&size);
    for (uint32_t keep = 0; keep < size - BGZF_HEADER - BGZF_FOOTER; keep++) {
        struct unit_bytes cut = {NULL, 0, 0};
        unit_append(&cut, block, BGZF_HEADER + keep);
        unit_append(&cut, block + size - BGZF_FOOTER, BGZF_FOOTER);
        store_le16(cut.data + 16, (uint16_t)(cut.n - 1));
        assert_int_equal(inflate_fault(cut.data, cut.n), BGZF_BAD_DEFLATE);
        unit_free(&cut);
    }
    free(block);
}

/* Every bit of the deflate data flipped: never wrong data without an error. */
static void test_no_damage_of_one_bit_goes_unseen(void **state)
{
    (void)state;
    uint32_t size, n;
    uint8_t *block = text_block(&size), *good, *out;
    assert_int_equal(inflate_exact(block, size, &good, &n), BGZF_OK);
    for (uint32_t bit = BGZF_HEADER * 8; bit < (size - BGZF_FOOTER) * 8; bit++) {
        block[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (inflate_exact(block, size, &out, &n) == BGZF_OK) {
            assert_int_equal(n, 1000);               /* a bit of padding */
            assert_memory_equal(out, good, n);
        }
        free(out);
        block[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    free(good);
    free(block);
}

static void test_bytes_between_data_and_footer_change_no_data(void **state)
{
    (void)state;
    uint32_t size, n;
    uint8_t *block = text_block(&size), *good, *out;
    assert_int_equal(inflate_exact(block, size, &good, &n), BGZF_OK);
    struct unit_bytes b = {NULL, 0, 0};
    unit_append(&b, block, size - BGZF_FOOTER);
    unit_append(&b, "garbage", 7);
    unit_append(&b, block + size - BGZF_FOOTER, BGZF_FOOTER);
    store_le16(b.data + 16, (uint16_t)(b.n - 1));
    enum bgzf_fault fault = inflate_exact(b.data, b.n, &out, &n);
    assert_true(fault == BGZF_OK || fault == BGZF_BAD_DEFLATE);
    if (fault == BGZF_OK)
        assert_memory_equal(out, good, 1000);
    free(out);
    free(good);
    free(block);
    unit_free(&b);
}

static void test_random_deflate_data_do_no_harm(void **state)
{
    (void)state;
    uint64_t seed = 3;
    for (int i = 0; i < 5000; i++) {
        uint8_t deflated[200];
        uint32_t n = unit_below(&seed, sizeof deflated);
        unit_fill(&seed, deflated, n);
        struct unit_bytes b = make_block(plain_extra, 6, deflated, n, (uint32_t)unit_random(&seed),
                                         unit_below(&seed, 2000));
        store_le16(b.data + 16, (uint16_t)(b.n - 1));
        assert_int_not_equal(inflate_fault(b.data, b.n), BGZF_OK);
        unit_free(&b);
    }
}

/* We fill blocks up to BGZF_FILL bytes; other writers up to 65536. */
static void test_largest_block_of_another_writer(void **state)
{
    (void)state;
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(9);
    MUST(compressor);
    uint8_t *data = make_data(TEXT, BGZF_MAX_BLOCK, 0), *out;
    uint8_t *deflated = must_alloc(BGZF_MAX_BLOCK);
    size_t size
        = libdeflate_deflate_compress(compressor, data, BGZF_MAX_BLOCK, deflated, BGZF_MAX_BLOCK);
    uint32_t n, crc = libdeflate_crc32(0, data, BGZF_MAX_BLOCK);
    struct unit_bytes b = make_block(plain_extra, 6, deflated, size, crc, BGZF_MAX_BLOCK);
    store_le16(b.data + 16, (uint16_t)(b.n - 1));
    assert_int_equal(inflate_exact(b.data, b.n, &out, &n), BGZF_OK);
    assert_int_equal(n, BGZF_MAX_BLOCK);
    assert_memory_equal(out, data, n);
    libdeflate_free_compressor(compressor);
    free(out);
    free(data);
    free(deflated);
    unit_free(&b);
}

static void test_codec_goes_on_after_a_damaged_block(void **state)
{
    (void)state;
    struct bgzf_codec *codec = bgzf_codec_new(6);
    uint8_t out[1000];
    uint32_t size;
    uint8_t *block = text_block(&size), *bad = exact_copy(block, size);
    struct bgzf_frame frame;
    assert_int_equal(bgzf_block_frame(block, size, &frame), BGZF_OK);
    memset(bad + BGZF_HEADER + 50, 0xff, 20);
    for (int i = 0; i < 3; i++) {
        assert_int_not_equal(bgzf_block_inflate(codec, bad, &frame, out), BGZF_OK);
        assert_int_equal(bgzf_block_inflate(codec, block, &frame, out), BGZF_OK);
    }
    bgzf_codec_free(codec);
    free(bad);
    free(block);
}

/* ---- deflate ---- */

static const uint32_t data_sizes[] = {0, 1, 2, 37, 1000, 65279, BGZF_FILL};

/* Deflates with guard bytes after the block, inflates, compares; appends block and data. */
static void round_trip(struct bgzf_codec *codec, const uint8_t *data, uint32_t n,
                       struct unit_bytes *blocks, struct unit_bytes *all)
{
    enum { GUARD = 16 };
    uint8_t *exact = exact_copy(data, n), *block = must_alloc(BGZF_MAX_BLOCK + GUARD), *out;
    memset(block, 0xa5, BGZF_MAX_BLOCK + GUARD);
    uint32_t got, size = bgzf_block_deflate(codec, exact, n, block);
    assert_in_range(size, BGZF_HEADER + 2 + BGZF_FOOTER, BGZF_MAX_BLOCK);
    for (uint32_t i = 0; i < GUARD; i++)
        assert_int_equal(block[BGZF_MAX_BLOCK + i], 0xa5);
    struct bgzf_frame frame;
    assert_int_equal(bgzf_block_frame(block, size, &frame), BGZF_OK);
    assert_int_equal(frame.size, size);
    assert_int_equal(inflate_exact(block, size, &out, &got), BGZF_OK);
    assert_int_equal(got, n);
    assert_memory_equal(out, data, n);
    unit_append(blocks, block, size);
    unit_append(all, data, n);
    free(out);
    free(exact);
    free(block);
}

/* Blocks of every level, size and kind of data, one after another, and their data. */
static void make_all(struct unit_bytes *blocks, struct unit_bytes *all)
{
    for (int level = BGZF_LEVEL_DEFAULT; level <= BGZF_LEVEL_TEXT_1; level++) {
        struct bgzf_codec *codec = bgzf_codec_new(level);
        MUST(codec);
        for (int kind = 0; kind < N_KINDS; kind++)
            for (size_t i = 0; i < N_OF(data_sizes); i++) {
                uint8_t *data = make_data((enum kind)kind, data_sizes[i], i);
                round_trip(codec, data, data_sizes[i], blocks, all);
                free(data);
            }
        bgzf_codec_free(codec);
    }
}

static void check_htslib_reads(const struct unit_bytes *blocks, const struct unit_bytes *all)
{
    hFILE *file = hopen("mem:", "r:", exact_copy(blocks->data, blocks->n), blocks->n);
    MUST(file);
    BGZF *in = bgzf_hopen(file, "r");
    MUST(in);
    assert_int_equal(bgzf_compression(in), 2);               /* BGZF, not gzip */
    uint8_t *out = must_alloc(all->n + 1);
    size_t n = 0;
    for (ssize_t got; (got = bgzf_read(in, out + n, all->n + 1 - n)) != 0; n += (size_t)got)
        assert_true(got > 0);
    assert_int_equal(n, all->n);
    assert_memory_equal(out, all->data, n);
    assert_int_equal(bgzf_close(in), 0);
    free(out);
}

/* Each block is a gzip member: gunzip, which shares no code with us, must agree. */
static void check_gunzip_reads(const struct unit_bytes *blocks, const struct unit_bytes *all)
{
    int in = unit_temp_file(), out = unit_temp_file(), status;
    unit_write(in, blocks->data, blocks->n);
    lseek(in, 0, SEEK_SET);
    pid_t child = fork();
    if (child == 0) {
        dup2(in, STDIN_FILENO);
        dup2(out, STDOUT_FILENO);
        execlp("gzip", "gzip", "-dc", (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    struct unit_bytes got = unit_read_file(out);
    assert_int_equal(got.n, all->n);
    assert_memory_equal(got.data, all->data, got.n);
    unit_free(&got);
    close(in);
    close(out);
}

static void test_every_level_and_size_is_read_by_htslib_and_gunzip(void **state)
{
    (void)state;
    struct unit_bytes blocks = {NULL, 0, 0}, all = {NULL, 0, 0};
    make_all(&blocks, &all);
    unit_append(&blocks, bgzf_block_eof, BGZF_EOF_SIZE);
    check_htslib_reads(&blocks, &all);
    check_gunzip_reads(&blocks, &all);
    unit_free(&blocks);
    unit_free(&all);
}

static void test_eof_block_is_the_one_of_the_format(void **state)
{
    (void)state;
    struct unit_bytes eof = {NULL, 0, 0};
    unit_append(&eof, bgzf_block_eof, BGZF_EOF_SIZE);
    hFILE *file = hopen("mem:", "r:", exact_copy(eof.data, eof.n), eof.n);
    MUST(file);
    BGZF *in = bgzf_hopen(file, "r");
    MUST(in);
    assert_int_equal(bgzf_check_EOF(in), 1);
    bgzf_close(in);
    unit_free(&eof);
}

static void test_every_level_but_0_compresses(void **state)
{
    (void)state;
    uint8_t *data = make_data(TEXT, BGZF_FILL, 5), *block = must_alloc(BGZF_MAX_BLOCK);
    uint32_t size[BGZF_LEVEL_MAX + 1];
    for (int level = 0; level <= BGZF_LEVEL_MAX; level++) {
        struct bgzf_codec *codec = bgzf_codec_new(level);
        size[level] = bgzf_block_deflate(codec, data, BGZF_FILL, block);
        bgzf_codec_free(codec);
    }
    assert_int_equal(size[0], BGZF_HEADER + 5 + BGZF_FILL + BGZF_FOOTER);
    for (int level = 1; level <= BGZF_LEVEL_MAX; level++)
        assert_true(size[level] < size[0] / 2);
    assert_true(size[9] < size[2]);
    free(data);
    free(block);
}

/* A block of level `level`; returns its size. */
static uint32_t deflate_at(int level, const uint8_t *data, uint8_t *block)
{
    struct bgzf_codec *codec = bgzf_codec_new(level);
    MUST(codec);
    uint32_t n = bgzf_block_deflate(codec, data, BGZF_FILL, block);
    bgzf_codec_free(codec);
    return n;
}

static void test_levels_around_the_default_are_the_default(void **state)
{
    (void)state;
    uint8_t *data = make_data(TEXT, BGZF_FILL, 7), *a = must_alloc(BGZF_MAX_BLOCK), *b = must_alloc(BGZF_MAX_BLOCK);
    uint32_t n = deflate_at(BGZF_LEVEL_DEFAULT, data, a);
    for (int level = 4; level <= 6; level++) {
        assert_int_equal(deflate_at(level, data, b), n);
        assert_memory_equal(a, b, n);
    }
    assert_true(deflate_at(3, data, b) != n && deflate_at(7, data, b) != n);
    free(data);
    free(a);
    free(b);
}

static void test_text_is_deflated_by_an_encoder_for_records(void **state)
{
    (void)state;
    static const struct { int level, theirs; } levels[] = {
        {BGZF_LEVEL_TEXT_1, 1}, {2, 2}, {3, 3}, {7, 8}, {8, 10}, {9, 12},
    };
    uint8_t *data = make_data(TEXT, BGZF_FILL, 8), *a = must_alloc(BGZF_MAX_BLOCK), *b = must_alloc(BGZF_MAX_BLOCK);
    for (size_t i = 0; i < N_OF(levels); i++) {
        struct libdeflate_compressor *lib = libdeflate_alloc_compressor(levels[i].theirs);
        MUST(lib);
        size_t size = libdeflate_deflate_compress(lib, data, BGZF_FILL, b, BGZF_MAX_BLOCK);
        assert_int_equal(deflate_at(levels[i].level, data, a), BGZF_HEADER + size + BGZF_FOOTER);
        assert_memory_equal(a + BGZF_HEADER, b, size);
        libdeflate_free_compressor(lib);
    }
    assert_true(bgzf_codec_memory(BGZF_LEVEL_TEXT_1) < 1 << 20);
    free(data);
    free(a);
    free(b);
}

static void test_level_above_nine_means_nine(void **state)
{
    (void)state;
    uint8_t *data = make_data(TEXT, 5000, 6), *a = must_alloc(BGZF_MAX_BLOCK),
            *b = must_alloc(BGZF_MAX_BLOCK);
    struct bgzf_codec *nine = bgzf_codec_new(9), *more = bgzf_codec_new(100);
    uint32_t n = bgzf_block_deflate(nine, data, 5000, a);
    assert_int_equal(bgzf_block_deflate(more, data, 5000, b), n);
    assert_memory_equal(a, b, n);
    bgzf_codec_free(nine);
    bgzf_codec_free(more);
    free(data);
    free(a);
    free(b);
}

/* Output must not depend on the codec's earlier blocks. */
static void test_block_does_not_depend_on_the_blocks_before(void **state)
{
    (void)state;
    uint8_t *data = make_data(TEXT, BGZF_FILL, 7), *noise = make_data(RANDOM, BGZF_FILL, 8);
    uint8_t *a = must_alloc(BGZF_MAX_BLOCK), *b = must_alloc(BGZF_MAX_BLOCK);
    for (int level = BGZF_LEVEL_DEFAULT; level <= BGZF_LEVEL_MAX; level++) {
        struct bgzf_codec *fresh = bgzf_codec_new(level), *used = bgzf_codec_new(level);
        bgzf_block_deflate(used, noise, BGZF_FILL, b);
        bgzf_block_deflate(used, data + 100, 30000, b);
        uint32_t n = bgzf_block_deflate(fresh, data, 40000, a);
        assert_int_equal(bgzf_block_deflate(used, data, 40000, b), n);
        assert_memory_equal(a, b, n);
        bgzf_codec_free(fresh);
        bgzf_codec_free(used);
    }
    free(data);
    free(noise);
    free(a);
    free(b);
}

static void test_data_gathered_in_place_are_stored_unmoved(void **state)
{
    (void)state;
    struct bgzf_codec *store = bgzf_codec_new(0), *compress = bgzf_codec_new(1);
    uint8_t *data = make_data(RANDOM, BGZF_FILL, 9);
    uint8_t *a = must_alloc(BGZF_MAX_BLOCK), *b = must_alloc(BGZF_MAX_BLOCK);
    assert_null(bgzf_block_stored_data(compress, a));
    for (size_t i = 0; i < N_OF(data_sizes); i++) {
        uint8_t *place = bgzf_block_stored_data(store, b);
        assert_non_null(place);
        memcpy(place, data, data_sizes[i]);
        uint32_t n = bgzf_block_deflate(store, data, data_sizes[i], a);
        assert_int_equal(bgzf_block_deflate(store, place, data_sizes[i], b), n);
        assert_memory_equal(a, b, n);
    }
    bgzf_codec_free(store);
    bgzf_codec_free(compress);
    free(data);
    free(a);
    free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frame_of_a_whole_block),
        cmocka_unit_test(test_prefix_of_any_length_asks_for_more_and_reads_no_further),
        cmocka_unit_test(test_other_data_are_known_by_their_first_byte),
        cmocka_unit_test(test_gzip_without_block_sizes_is_told_apart),
        cmocka_unit_test(test_other_flags_shift_the_data_or_hide_the_block),
        cmocka_unit_test(test_extra_field_cut_short),
        cmocka_unit_test(test_subfields_before_and_after_bc),
        cmocka_unit_test(test_subfield_that_runs_past_the_extra_field),
        cmocka_unit_test(test_longest_extra_field),
        cmocka_unit_test(test_block_smaller_than_its_own_frame),
        cmocka_unit_test(test_inflated_size_beyond_a_block),
        cmocka_unit_test(test_every_fault_has_its_words),
        cmocka_unit_test(test_wrong_crc_is_found),
        cmocka_unit_test(test_wrong_inflated_size_is_found),
        cmocka_unit_test(test_cut_deflate_data_are_found),
        cmocka_unit_test(test_no_damage_of_one_bit_goes_unseen),
        cmocka_unit_test(test_bytes_between_data_and_footer_change_no_data),
        cmocka_unit_test(test_random_deflate_data_do_no_harm),
        cmocka_unit_test(test_largest_block_of_another_writer),
        cmocka_unit_test(test_codec_goes_on_after_a_damaged_block),
        cmocka_unit_test(test_every_level_and_size_is_read_by_htslib_and_gunzip),
        cmocka_unit_test(test_eof_block_is_the_one_of_the_format),
        cmocka_unit_test(test_every_level_but_0_compresses),
        cmocka_unit_test(test_levels_around_the_default_are_the_default),
        cmocka_unit_test(test_text_is_deflated_by_an_encoder_for_records),
        cmocka_unit_test(test_level_above_nine_means_nine),
        cmocka_unit_test(test_block_does_not_depend_on_the_blocks_before),
        cmocka_unit_test(test_data_gathered_in_place_are_stored_unmoved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
