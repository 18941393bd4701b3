/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include <errno.h>
#include <libdeflate.h>
#include <htslib/hfile.h>
#include <htslib/hts_log.h>
#include <htslib/sam.h>
#include "hts/cram_count.h"

/* ---- files made by hand ---- */

/* The shortest form of a number in `bits` bits: itf8 has 32, ltf8 64. */
static void put_number(struct unit_bytes *b, uint64_t v, unsigned bits)
{
    unsigned n = 1, most = bits == 32 ? 5 : 9;
    while (n < most && v >> 7 * n)
        n++;
    uint8_t *to = unit_more(b, n);
    if (n == 5 && bits == 32) {                  /* 4 bits in the first byte, and 4 in the last */
        to[4] = v & 15;
        v = v >> 4 | (uint64_t)0xf << 32 >> 4;
        for (int i = 3; i >= 0; i--, v >>= 8)
            to[i] = (uint8_t)v;
        to[0] |= 0xf0;
        return;
    }
    for (unsigned i = n; i-- > 0; v >>= 8)
        to[i] = (uint8_t)v;
    to[0] |= (uint8_t)(0xff00 >> (n - 1));
}

static struct unit_bytes definition(int major)
{
    struct unit_bytes b = {NULL, 0, 0};
    unit_append(&b, "CRAM", 4);
    *unit_more(&b, 1) = (uint8_t)major;
    memset(unit_more(&b, 21), 1, 21);
    return b;
}

struct container {
    uint32_t n, blocks, landmarks, length, reference;
    uint64_t counter, bases;
};

static void put_container_header(struct unit_bytes *b, int major, const struct container *c)
{
    size_t start = b->n;
    unit_append_le32(b, c->length);
    put_number(b, c->reference, 32);
    put_number(b, 1000000000, 32);               /* start */
    put_number(b, 151, 32);                      /* span */
    put_number(b, c->n, 32);
    put_number(b, c->counter, major == 2 ? 32 : 64);
    put_number(b, c->bases, 64);
    put_number(b, c->blocks, 32);
    put_number(b, c->landmarks, 32);
    for (uint32_t i = 0; i < c->landmarks && c->landmarks <= INT32_MAX; i++)
        put_number(b, i * i * i, 32);
    if (major > 2)
        unit_append_le32(b, libdeflate_crc32(0, b->data + start, b->n - start));
}

static void put_container(struct unit_bytes *b, int major, const struct container *c)
{
    put_container_header(b, major, c);
    if (c->length <= INT32_MAX)
        memset(unit_more(b, c->length), 0xff, c->length);
}

static void put_block(struct unit_bytes *b, int major, uint8_t type, uint32_t size)
{
    unit_append(b, (uint8_t[]){0, type, 0}, 3);  /* method, type, id */
    put_number(b, size, 32);
    put_number(b, 10 * size, 32);
    size += major > 2 ? 4 : 0;
    memset(unit_more(b, size), 0xfe, size);
}

/* The header's container states a length that is `more` bytes longer than its blocks. */
static void put_header(struct unit_bytes *b, int major, int more)
{
    struct unit_bytes blocks = {NULL, 0, 0};
    put_block(&blocks, major, 0, 200);
    put_block(&blocks, major, 0, 0);
    put_block(&blocks, major, 0, 20);
    struct container c = {.n = 77, .length = (uint32_t)((int)blocks.n + more), .blocks = 3, .landmarks = 1};
    put_container_header(b, major, &c);
    unit_append(b, blocks.data, blocks.n);
    if (more > 0)
        memset(unit_more(b, (size_t)more), 0xff, (size_t)more);
    unit_free(&blocks);
}

/* A block of up to 127 bytes whose CRC-32 is checked. */
static void put_checked_block(struct unit_bytes *b, uint8_t type, uint8_t size)
{
    size_t start = b->n;
    uint8_t head[] = {0, type, 3, size, size};
    unit_append(b, head, sizeof head);
    memset(unit_more(b, size), 0xab, size);
    unit_append_le32(b, libdeflate_crc32(0, b->data + start, b->n - start));
}

/* A container as htslib writes it: a compression header, and slices of a header, a block of core data and an external
 * one, whose CRC-32 is wrong. */
static void put_slices(struct unit_bytes *b, uint32_t n, uint32_t slices, uint8_t size)
{
    struct unit_bytes inside = {NULL, 0, 0};
    put_checked_block(&inside, 1, size);
    for (uint32_t i = 0; i < slices; i++) {
        put_checked_block(&inside, (uint8_t)(2 + i % 2), size);
        put_block(&inside, 3, 5, 100 * size);
        put_block(&inside, 3, 4, size);
    }
    struct container c = {.n = n, .blocks = 1 + 3 * slices, .landmarks = slices, .length = (uint32_t)inside.n};
    put_container_header(b, 3, &c);
    unit_append(b, inside.data, inside.n);
    unit_free(&inside);
}

static const struct container end = {.length = 15, .reference = UINT32_MAX};

static struct unit_bytes file_of(int major, const struct container *c, size_t n)
{
    struct unit_bytes b = definition(major);
    put_header(&b, major, 0);
    for (size_t i = 0; i < n; i++)
        put_container(&b, major, &c[i]);
    put_container(&b, major, &end);
    return b;
}

/* Numbers of every length, also for landmarks. */
static const struct container usual[] = {
    {.n = 1, .landmarks = 1, .length = 70000},
    {.n = 10000, .landmarks = 1, .length = 3, .counter = 127, .bases = 128},
    {.n = 127, .landmarks = 130, .length = 1, .counter = 16383, .bases = (uint64_t)1 << 62},
    {.n = 128, .landmarks = 0, .length = 2, .counter = 1 << 21, .bases = 1 << 28},
    {.n = 16383, .landmarks = 2, .length = 0, .counter = INT32_MAX, .bases = (uint64_t)1 << 40},
    {.n = 16384, .landmarks = 3, .length = 9, .counter = UINT32_MAX, .bases = (uint64_t)1 << 48},
    {.n = 1 << 21, .landmarks = 1, .length = 5, .reference = UINT32_MAX - 1, .bases = (uint64_t)1 << 55},
    {.n = 1 << 28, .landmarks = 1, .length = 5, .bases = UINT64_MAX},
    {.n = INT32_MAX, .landmarks = 1, .length = 5, .bases = (uint64_t)1 << 35},
};

static uint64_t sum(const struct container *c, size_t n)
{
    uint64_t all = 0;
    for (size_t i = 0; i < n; i++)
        all += c[i].n;
    return all;
}

/* ---- ways of counting ---- */

static struct cram_count fed(const uint8_t *bytes, size_t n, size_t piece)
{
    struct cram_count c;
    cram_count_start(&c, true);
    for (size_t at = 0; at < n; at += piece) {
        uint8_t *exact = exact_copy(bytes + at, piece < n - at ? piece : n - at);
        cram_count_feed(&c, exact, piece < n - at ? piece : n - at);
        free(exact);
    }
    assert_int_equal(c.at, n);
    return c;
}

static struct cram_count walked(const uint8_t *bytes, size_t n, uint64_t step)
{
    struct cram_count c;
    int fd = unit_temp_file();
    unit_write(fd, "before", 6);
    unit_write(fd, bytes, n);
    cram_count_start(&c, true);
    for (uint64_t to = step; to < n; to += step)
        assert_int_equal(cram_count_file(&c, fd, 6, to), 0);
    assert_int_equal(cram_count_file(&c, fd, 6, n), 0);
    close(fd);
    return c;
}

/* ---- tests ---- */

static void test_count_depends_on_how_the_file_is_cut(void **state)
{
    (void)state;
    for (int major = 2; major <= 3; major++) {
        struct unit_bytes b = file_of(major, usual, N_OF(usual));
        for (size_t piece = 1; piece <= b.n; piece = piece < 200 ? piece + 1 : 3 * piece) {
            struct cram_count c = fed(b.data, b.n, piece), w = walked(b.data, b.n, piece < 50 ? 50 : piece);
            assert_int_equal(c.records, sum(usual, N_OF(usual)));
            assert_true(cram_count_agrees(&c, c.records));
            assert_false(cram_count_agrees(&c, c.records + 1));
            assert_false(cram_count_agrees(&c, c.records - 1));
            assert_true(cram_count_agrees(&w, c.records));
        }
        unit_free(&b);
    }
}

/* htslib makes it too short in version 2, and leaves room after blocks in others. */
static void test_length_of_the_header_is_believed(void **state)
{
    (void)state;
    for (int major = 2; major <= 3; major++)
        for (int more = -3; more < 10; more++) {
            struct unit_bytes b = definition(major);
            put_header(&b, major, more);
            put_container(&b, major, usual);
            struct cram_count c = fed(b.data, b.n, b.n), w = walked(b.data, b.n, 1);
            assert_true(cram_count_agrees(&c, usual->n));
            assert_true(cram_count_agrees(&w, usual->n));
            unit_free(&b);
        }
}

static void test_cut_file_agrees(void **state)
{
    (void)state;
    for (int major = 2; major <= 3; major++) {
        struct unit_bytes b = file_of(major, usual + 1, N_OF(usual) - 1);
        unsigned whole = 0;
        for (size_t n = 0; n < b.n; n++) {
            struct cram_count c = fed(b.data, n, 100), w = walked(b.data, n, n + 1);
            whole += cram_count_agrees(&c, c.records);
            assert_int_equal(cram_count_agrees(&w, c.records), cram_count_agrees(&c, c.records));
        }
        assert_int_equal(whole, 4 * N_OF(usual));            /* between containers, and up to 3 bytes on */
        unit_free(&b);
    }
}

static void test_hostile_numbers_are_believed(void **state)
{
    (void)state;
    static const struct container bad[] = {
        {.n = 1, .length = (uint32_t)INT32_MAX + 1}, {.n = 1, .length = UINT32_MAX},
        {.n = (uint32_t)INT32_MAX + 1}, {.n = UINT32_MAX},
        {.n = 1, .landmarks = (uint32_t)INT32_MAX + 1}, {.n = 1, .landmarks = UINT32_MAX},
        {.n = 1, .blocks = UINT32_MAX},
    };
    for (size_t i = 0; i < N_OF(bad); i++)
        for (int major = 2; major <= 3; major++) {
            struct unit_bytes b = file_of(major, &bad[i], 1);
            struct cram_count c = fed(b.data, b.n, b.n);
            assert_true(c.rest == UINT64_MAX && c.records == 0);
            for (uint32_t n = 0; n < 3; n++)
                assert_false(cram_count_agrees(&c, n));
            unit_free(&b);
        }
}

static void test_flipped_bit_in_a_header_agrees(void **state)
{
    (void)state;
    struct unit_bytes b = file_of(3, usual + 1, 1);
    size_t from = b.n - 15 - 19;                 /* the last header; the CRC covers it */
    for (size_t bit = 8 * from; bit < 8 * (b.n - 15); bit++) {
        b.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        struct cram_count c = fed(b.data, b.n, b.n);
        assert_false(cram_count_agrees(&c, usual[1].n));
        b.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    struct cram_count c = fed(b.data, b.n, b.n);
    assert_true(cram_count_agrees(&c, usual[1].n));
    unit_free(&b);
}

/* Two containers of 5 records, the second with no data in its header blocks. */
static struct unit_bytes file_of_slices(uint32_t slices)
{
    struct unit_bytes b = definition(3);
    put_header(&b, 3, 0);
    put_slices(&b, 5, slices, 90);
    put_slices(&b, 5, slices, 0);
    put_container(&b, 3, &end);
    return b;
}

static void test_count_of_slices_depends_on_how_the_file_is_cut(void **state)
{
    (void)state;
    for (uint32_t slices = 0; slices < 4; slices++) {
        struct unit_bytes b = file_of_slices(slices);
        for (size_t piece = 1; piece <= b.n; piece = piece < 200 ? piece + 1 : 3 * piece) {
            struct cram_count c = fed(b.data, b.n, piece), w = walked(b.data, b.n, piece < 50 ? 50 : piece);
            assert_true(cram_count_agrees(&c, 10) && cram_count_agrees(&w, 10));
            assert_true(c.damaged == 0 && w.damaged == 0);
        }
        unit_free(&b);
    }
}

/* Returns whether `at` is in a header block of the file, and not in the sizes by which it is found. Then `start` is the
 * block's start. */
static bool is_checked(const struct unit_bytes *b, size_t at, uint8_t size, size_t *start)
{
    for (*start = 0; *start + 9 + size <= b->n; ++*start) {
        const uint8_t *p = b->data + *start;
        if (p[0] == 0 && p[1] >= 1 && p[1] <= 3 && p[2] == 3 && p[3] == size && p[4] == size
                && at >= *start && at < *start + 9 + size)
            return at - *start != 1 && at - *start != 3 && at - *start != 4;
    }
    return false;
}

static void test_flipped_bit_in_a_header_block_passes(void **state)
{
    (void)state;
    struct unit_bytes b = file_of_slices(3);
    unsigned checked = 0;
    size_t start;
    for (size_t at = 300; at < b.n; at++)
        if (is_checked(&b, at, 90, &start) || is_checked(&b, at, 0, &start)) {
            b.data[at] ^= (uint8_t)(1 << at % 8);
            struct cram_count c = fed(b.data, b.n, 100), w = walked(b.data, b.n, b.n), blind;
            assert_int_equal(c.damaged, start);
            assert_int_equal(w.damaged, start);
            cram_count_start(&blind, false);
            cram_count_feed(&blind, b.data, b.n);
            assert_true(blind.damaged == 0 && cram_count_agrees(&blind, 10));
            b.data[at] ^= (uint8_t)(1 << at % 8);
            checked++;
        }
    assert_int_equal(checked, 4 * (90 + 9 - 3) + 4 * (9 - 3));
    unit_free(&b);
}

/* Blocks that do not fit into their container are not checked, and nothing of the next container is lost. */
static void test_blocks_end_behind_their_container(void **state)
{
    (void)state;
    for (int major = 2; major <= 3; major++)
        for (uint8_t size = 80; size < 127; size++) {
            struct unit_bytes b = definition(major);
            put_header(&b, major, 0);
            put_container_header(&b, major, &(struct container){.n = 7, .blocks = 1, .landmarks = 1, .length = 100});
            unit_append(&b, (uint8_t[]){0, 1, 0, size, size}, 5);
            memset(unit_more(&b, 95), 0, 95);
            put_container(&b, major, &end);
            struct cram_count c = fed(b.data, b.n, 1000);
            assert_true(cram_count_agrees(&c, 7));
            assert_true((c.damaged > 0) == (major == 3 && size <= 91));   /* that many bytes, and 4 of the CRC-32 */
            unit_free(&b);
        }
}

static void test_version_that_is_not_known_is_an_error(void **state)
{
    (void)state;
    static const int majors[] = {0, 1, 4, 255};
    for (size_t i = 0; i < N_OF(majors); i++) {
        struct unit_bytes b = file_of(majors[i], usual, 1);
        struct cram_count c = walked(b.data, b.n, b.n);
        assert_true(cram_count_agrees(&c, 1234));
        unit_free(&b);
    }
    struct unit_bytes b = file_of(3, usual, 1);
    b.data[3] = 'm';
    struct cram_count c = walked(b.data, b.n, b.n);
    assert_false(cram_count_agrees(&c, usual->n));
    unit_free(&b);
}

static void test_file_that_cannot_be_read_is_whole(void **state)
{
    (void)state;
    struct cram_count c;
    cram_count_start(&c, true);
    assert_int_equal(cram_count_file(&c, -1, 0, 100), -1);
    assert_int_equal(errno, EBADF);
    assert_false(cram_count_agrees(&c, 0));
}

/* n reads, as htslib writes them. */
static struct unit_bytes htslib_cram(const char *mode, const char *options[], int n)
{
    int fd = unit_temp_file();
    samFile *file = hts_hopen(hdopen(dup(fd), "w"), "-", mode);
    sam_hdr_t *head = sam_hdr_parse(15, "@SQ\tSN:a\tLN:999\n");
    bam1_t *b = bam_init1();
    MUST(file && head && b);
    assert_int_equal(hts_set_opt(file, CRAM_OPT_NO_REF, 1), 0);
    hts_opt *list = NULL;
    for (; *options; options++)
        assert_int_equal(hts_opt_add(&list, *options), 0);
    assert_int_equal(hts_opt_apply(file, list), 0);
    hts_opt_free(list);
    assert_int_equal(sam_hdr_write(file, head), 0);
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "r%d", i);
        assert_true(bam_set1(b, strlen(name), name, 4, i < n / 2 ? 0 : -1, i < n / 2 ? i : -1, 0, 0, NULL, -1, -1, 0, 4,
                             "ACGT", "!!!!", 0) >= 0);
        assert_true(sam_write1(file, head, b) >= 0);
    }
    assert_int_equal(hts_close(file), 0);
    bam_destroy1(b);
    sam_hdr_destroy(head);
    struct unit_bytes all = unit_read_file(fd);
    close(fd);
    return all;
}

static void test_count_of_what_htslib_writes_is_wrong(void **state)
{
    (void)state;
    static const char *versions[] = {"version=2.1", "version=3.0", "version=3.1"};
    static const char *shapes[][3] = {{NULL}, {"seqs_per_slice=7", NULL},
                                      {"seqs_per_slice=7", "slices_per_container=9", NULL},
                                      {"seqs_per_slice=100", "multi_seq_per_slice=1", NULL}};
    for (size_t v = 0; v < N_OF(versions); v++)
        for (size_t s = 0; s < N_OF(shapes); s++)
            for (int n = 0; n < 1000; n = 3 * n + 1) {
                const char *options[] = {versions[v], shapes[s][0], shapes[s][0] ? shapes[s][1] : NULL, NULL};
                struct unit_bytes b = htslib_cram("wc", options, n);
                struct cram_count c = fed(b.data, b.n, 1000), w = walked(b.data, b.n, b.n);
                assert_int_equal(c.records, n);
                assert_true(cram_count_agrees(&c, (uint64_t)n));
                assert_true(cram_count_agrees(&w, (uint64_t)n));
                assert_true(c.damaged == 0 && w.damaged == 0);
                unit_free(&b);
            }
}

/* One step for each container of records: its place, and the number of records in its slices. */
static void test_step_is_not_one_container(void **state)
{
    (void)state;
    static const char *shapes[][3] = {{"version=3.0", "seqs_per_slice=7", NULL},
                                      {"version=3.1", "seqs_per_slice=7", "slices_per_container=9"}};
    for (size_t s = 0; s < N_OF(shapes); s++) {
        const char *options[] = {shapes[s][0], shapes[s][1], shapes[s][2], NULL};
        struct unit_bytes b = htslib_cram("wc", options, 1000);
        int fd = unit_temp_file(), found;
        unit_write(fd, b.data, b.n);
        uint64_t n = 0, at = 0;
        struct cram_count c;
        for (cram_count_start(&c, true); (found = cram_count_next(&c, fd, 0, b.n)) > 0; at = c.end) {
            assert_true(c.container > 0 && (at == 0 || c.container == at) && c.end == c.at);
            assert_true(c.in_slices == c.n && !c.uncounted);
            n += c.in_slices;
        }
        assert_true(found == 0 && n == 1000 && at == b.n && cram_count_agrees(&c, n));
        close(fd);
        unit_free(&b);
    }
}

/* The slices of this container do not state their numbers, so the container's number is used. */
static void test_slices_that_tell_nothing_are_believed(void **state)
{
    (void)state;
    struct unit_bytes b = definition(3);
    put_header(&b, 3, 0);
    put_slices(&b, 10, 2, 7);
    put_container(&b, 3, &end);
    int fd = unit_temp_file();
    unit_write(fd, b.data, b.n);
    struct cram_count c;
    cram_count_start(&c, true);
    assert_int_equal(cram_count_next(&c, fd, 0, b.n), 1);
    assert_true(c.in_slices == 10 && c.uncounted);
    assert_int_equal(cram_count_next(&c, fd, 0, b.n), 1);
    assert_true(c.in_slices == 0 && c.end == b.n);
    assert_int_equal(cram_count_next(&c, fd, 0, b.n), 0);
    cram_count_start(&c, true);
    assert_int_equal(cram_count_next(&c, fd, 0, b.n - 60), 1);       /* cut inside */
    assert_int_equal(c.in_slices, 10);
    close(fd);
    unit_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_count_depends_on_how_the_file_is_cut),
        cmocka_unit_test(test_length_of_the_header_is_believed),
        cmocka_unit_test(test_cut_file_agrees),
        cmocka_unit_test(test_hostile_numbers_are_believed),
        cmocka_unit_test(test_flipped_bit_in_a_header_agrees),
        cmocka_unit_test(test_count_of_slices_depends_on_how_the_file_is_cut),
        cmocka_unit_test(test_flipped_bit_in_a_header_block_passes),
        cmocka_unit_test(test_blocks_end_behind_their_container),
        cmocka_unit_test(test_version_that_is_not_known_is_an_error),
        cmocka_unit_test(test_file_that_cannot_be_read_is_whole),
        cmocka_unit_test(test_count_of_what_htslib_writes_is_wrong),
        cmocka_unit_test(test_step_is_not_one_container),
        cmocka_unit_test(test_slices_that_tell_nothing_are_believed),
    };
    hts_set_log_level(HTS_LOG_ERROR);            /* htslib warns of version 3.1 */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
