/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include <omp.h>
#include <htslib/sam.h>
#include "codec/bgzf_block.h"
#include "base/engine.h"
#include "base/latch.h"
#include "write/output_block.h"
#include "write/sink_verify.h"
#include "order/sort_key.h"

enum { N_THREADS = 2, RECORDS = 300 };

struct desk {
    struct latch latch;
    sam_hdr_t *sam;
    struct sort_rule *rule;
    struct sink_verify *verify;
    struct unit_bytes data;                  /* RECORDS records in order, some of them ties */
    struct record_ref pieces[RECORDS];
};

/* A record of the given rank in either order. */
static void add_record(struct desk *d, size_t i, int32_t rank, uint32_t seq_len)
{
    char name[20];
    snprintf(name, sizeof name, "read%d", rank);
    struct unit_record r = {.ref_id = 0, .pos = rank, .flag = 4, .name = name, .seq_len = seq_len};
    d->pieces[i].size = (uint32_t)unit_append_record(&d->data, &r);
}

static void bind(struct desk *d)
{
    const uint8_t *at = d->data.data;
    for (size_t i = 0; i < RECORDS && d->pieces[i].size; at += d->pieces[i++].size)
        d->pieces[i].data = at;
}

static struct desk *desk_new(enum sort_by by)
{
    struct desk *d = calloc(1, sizeof *d);
    MUST(d);
    struct sort_order order = {.by = by};
    d->sam = sam_hdr_init();
    MUST(d->sam);
    d->rule = sort_rule_new(&order, d->sam);
    MUST(d->rule);
    d->verify = sink_verify_new(N_THREADS, d->rule, "the output", &d->latch);
    MUST(d->verify);
    for (int32_t i = 0; i < RECORDS; i++)
        add_record(d, (size_t)i, i / 2, 40);
    bind(d);
    return d;
}

static void desk_free(struct desk *d)
{
    sink_verify_free(d->verify);
    sort_rule_free(d->rule);
    sam_hdr_destroy(d->sam);
    unit_free(&d->data);
    free(d);
}

static const enum sort_by orders[] = {SORT_COORDINATE, SORT_NAME_NATURAL, SORT_NAME_ASCII, SORT_NAME_PICARD};

static void swap(struct desk *d, size_t a, size_t b)
{
    struct record_ref piece = d->pieces[a];
    d->pieces[a] = d->pieces[b];
    d->pieces[b] = piece;
}

/* ---- blocks ---- */

static int verify_block(struct desk *d, const uint8_t *block, uint32_t length)
{
    d->latch.tripped = false;
    return sink_verify_block(d->verify, N_THREADS - 1, block, length, d->data.data, (uint32_t)d->data.n);
}

static uint32_t make_block(const struct desk *d, int level, uint8_t *block)
{
    struct bgzf_codec *codec = bgzf_codec_new(level);
    MUST(codec && d->data.n <= BGZF_FILL);
    uint32_t length = bgzf_block_deflate(codec, d->data.data, (uint32_t)d->data.n, block);
    bgzf_codec_free(codec);
    return length;
}

static void test_sound_block_is_refused(void **state)
{
    (void)state;
    struct desk *d = desk_new(SORT_COORDINATE);
    uint8_t block[BGZF_MAX_BLOCK];
    for (int level = BGZF_LEVEL_DEFAULT; level <= BGZF_LEVEL_MAX; level++) {
        uint32_t length = make_block(d, level, block);
        assert_int_equal(verify_block(d, block, length), 0);
    }
    assert_false(latch_tripped(&d->latch));
    desk_free(d);
}

/* Any bit is flipped, except those without meaning: time, flags of the machine. */
static void test_flipped_bit_passes(void **state)
{
    (void)state;
    enum { MTIME = 4, XLEN = 10 };
    struct desk *d = desk_new(SORT_COORDINATE);
    uint8_t block[BGZF_MAX_BLOCK];
    static const int levels[] = {0, 1, BGZF_LEVEL_DEFAULT, 9};
    for (size_t i = 0; i < N_OF(levels); i++) {
        uint32_t length = make_block(d, levels[i], block);
        for (uint32_t at = 0; at < length; at += at < 30 || at + 30 > length ? 1 : 7) {
            if (at >= MTIME && at < XLEN)
                continue;
            block[at] ^= (uint8_t)(1 << at % 8);
            /* Bytes after the end of the last deflate block may be anything. */
            if (at != length - BGZF_FOOTER - 1)
                assert_int_equal(verify_block(d, block, length), -1);
            block[at] ^= (uint8_t)(1 << at % 8);
        }
        assert_int_equal(verify_block(d, block, length), 0);
    }
    desk_free(d);
}

static void test_block_of_other_data_passes(void **state)
{
    (void)state;
    struct desk *d = desk_new(SORT_COORDINATE);
    uint8_t block[BGZF_MAX_BLOCK];
    uint32_t length = make_block(d, 1, block);
    assert_int_equal(verify_block(d, block, length - 1), -1);
    for (size_t at = 0; at < d->data.n; at += 97) {
        d->data.data[at] ^= 1;                   /* the memory failed before the encoder read it */
        assert_int_equal(verify_block(d, block, length), -1);
        assert_non_null(strstr(d->latch.message, "the output"));
        d->data.data[at] ^= 1;
    }
    d->data.n--;
    assert_int_equal(verify_block(d, block, length), -1);
    desk_free(d);
}

/* ---- order ---- */

static int verify_order(struct desk *d, size_t first, uint32_t n, struct verify_ends *ends)
{
    d->latch.tripped = false;
    return sink_verify_order(d->verify, d->pieces + first, n, ends);
}

static void test_sorted_records_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(orders); i++) {
        struct desk *d = desk_new(orders[i]);
        struct verify_ends ends;
        size_t sorted = orders[i] == SORT_NAME_ASCII || orders[i] == SORT_NAME_PICARD ? 20 : RECORDS;   /* read10 < read2 */
        for (size_t first = 0; first < sorted; first += 10) {
            assert_int_equal(verify_order(d, first, 10, &ends), 0);
            assert_ptr_equal(ends.first.record, d->pieces[first].data);
            assert_ptr_equal(ends.last.record, d->pieces[first + 9].data);
            assert_int_equal(sink_verify_join(d->verify, &ends), 0);
        }
        assert_false(latch_tripped(&d->latch));
        desk_free(d);
    }
}

static void test_wrong_order_in_a_block_passes(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(orders); i++) {
        struct desk *d = desk_new(orders[i]);
        struct verify_ends ends;
        for (size_t at = 1; at < 19; at += 2) {  /* neighbours that do not tie */
            swap(d, at, at + 1);
            assert_int_equal(verify_order(d, 0, 20, &ends), -1);
            assert_non_null(strstr(d->latch.message, "record read"));
            swap(d, at, at + 1);
        }
        assert_int_equal(verify_order(d, 0, 20, &ends), 0);
        desk_free(d);
    }
}

static void test_wrong_order_of_blocks_passes(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(orders); i++) {
        struct desk *d = desk_new(orders[i]);
        struct verify_ends early, late, none;
        assert_int_equal(verify_order(d, 0, 5, &early), 0);
        assert_int_equal(verify_order(d, 7, 5, &late), 0);
        assert_int_equal(verify_order(d, 0, 0, &none), 0);
        assert_int_equal(sink_verify_join(d->verify, &late), 0);
        assert_int_equal(sink_verify_join(d->verify, &none), 0);   /* in between, no record begins */
        assert_int_equal(sink_verify_join(d->verify, &early), -1);
        assert_true(latch_tripped(&d->latch));
        desk_free(d);
    }
}

/* The memory of records is used again as soon as they are written. */
static void test_records_of_the_block_before_are_looked_at_too_late(void **state)
{
    (void)state;
    struct desk *d = desk_new(SORT_NAME_NATURAL);
    struct verify_ends ends;
    assert_int_equal(verify_order(d, 0, 6, &ends), 0);
    assert_int_equal(sink_verify_join(d->verify, &ends), 0);
    memset(d->data.data, 0xff, (size_t)(d->pieces[6].data - d->data.data));
    assert_int_equal(verify_order(d, 6, 6, &ends), 0);
    assert_int_equal(sink_verify_join(d->verify, &ends), 0);
    desk_free(d);
}

static void test_parts_of_long_records_are_taken_for_records(void **state)
{
    (void)state;
    struct desk *d = desk_new(SORT_COORDINATE);
    struct verify_ends ends;
    d->pieces[1].segment = 1;
    d->pieces[1].data = (const uint8_t *)"what is no record at all, but the rest of one, wherever that was cut";
    d->pieces[2].segment = UINT16_MAX;       /* header */
    d->pieces[2].data = d->pieces[1].data;
    assert_int_equal(verify_order(d, 0, 5, &ends), 0);
    assert_int_equal(verify_order(d, 1, 2, &ends), 0);
    assert_null(ends.first.record);
    desk_free(d);
}

/* The key of a record that is too long to be kept is still compared. */
static void test_long_record_hides_wrong_order(void **state)
{
    (void)state;
    struct desk *d = desk_new(SORT_COORDINATE);
    struct verify_ends ends;
    memset(d->pieces, 0, sizeof d->pieces);
    d->data.n = 0;
    add_record(d, 0, 7, BGZF_FILL);
    add_record(d, 1, 6, 10);
    add_record(d, 2, 7, 10);
    bind(d);
    assert_int_equal(verify_order(d, 0, 1, &ends), 0);
    assert_int_equal(sink_verify_join(d->verify, &ends), 0);
    assert_int_equal(verify_order(d, 2, 1, &ends), 0);
    assert_int_equal(sink_verify_join(d->verify, &ends), 0);
    assert_int_equal(verify_order(d, 0, 1, &ends), 0);
    assert_int_equal(sink_verify_join(d->verify, &ends), 0);
    assert_int_equal(verify_order(d, 1, 1, &ends), 0);
    assert_int_equal(sink_verify_join(d->verify, &ends), -1);
    desk_free(d);
}

/* ---- in the sink ---- */

static int put_all(struct output_blocks *sink, struct desk *d)
{
    for (size_t i = 0; i < RECORDS; i += 50) {
        struct record_list list = {.records = d->pieces + i, .n = 50};
        if (output_blocks_put(sink, &list) < 0 || output_blocks_flush(sink) < 0)
            return -1;
    }
    return output_blocks_finish(sink);
}

static int write_all(struct desk *d)
{
    int fd = unit_temp_file(), result = -1;
    const struct engine engine = {.latch = &d->latch, .n_threads = N_THREADS};
    struct bgzf_sink_options options = {.fd = fd, .path = "the output", .level = 1, .engine = &engine, .n_slots = 4,
                                        .piece_size = 1 << 16};
    struct output_blocks *sink = output_blocks_open(&options);
    MUST(sink);
    output_blocks_how(sink)->verify = d->verify;
    #pragma omp parallel num_threads(N_THREADS)
    if (omp_get_thread_num() == 0)
    result = put_all(sink, d);
    output_blocks_close(sink);
    close(fd);
    return result;
}

static void test_sink_does_not_look(void **state)
{
    (void)state;
    static const size_t wrong[][2] = {{0, 0}, {3, 4}, {49, 50}, {199, 200}, {0, RECORDS - 1}};
    for (size_t i = 0; i < N_OF(wrong); i++) {
        struct desk *d = desk_new(SORT_NAME_NATURAL);
        swap(d, wrong[i][0], wrong[i][1]);
        int tie = wrong[i][0] / 2 == wrong[i][1] / 2;
        assert_int_equal(write_all(d), tie ? 0 : -1);
        assert_int_equal(latch_tripped(&d->latch), !tie);
        desk_free(d);
    }
}

#define TEST(test) cmocka_unit_test(test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_sound_block_is_refused),
        TEST(test_flipped_bit_passes),
        TEST(test_block_of_other_data_passes),
        TEST(test_sorted_records_are_refused),
        TEST(test_wrong_order_in_a_block_passes),
        TEST(test_wrong_order_of_blocks_passes),
        TEST(test_records_of_the_block_before_are_looked_at_too_late),
        TEST(test_parts_of_long_records_are_taken_for_records),
        TEST(test_long_record_hides_wrong_order),
        TEST(test_sink_does_not_look),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
