/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include <fcntl.h>
#include "base/engine.h"
#include "base/latch.h"
#include "base/task_ring.h"
#include "codec/kept_block.h"
#include "write/copied_blocks.h"
#include "write/output_block.h"

enum { BLOCKS = 8, RECORDS = 40, SIZE = 1000 };   /* records in a block, bytes of each */

/* Records as a slice has them: each block before its first record. */
struct slice {
    struct byte_buffer bytes;
    size_t at[BLOCKS * RECORDS];
    struct record_ref refs[BLOCKS * RECORDS];
};

/* Makes blocks and their records. One record of block number `other` differs from the block. */
static void make_slice(struct slice *s, size_t other)
{
    struct bgzf_codec *codec = bgzf_codec_new(1);
    uint8_t *compressed = malloc(BGZF_MAX_BLOCK), data[RECORDS * SIZE];
    MUST(codec && compressed);
    for (size_t i = 0; i < BLOCKS; i++) {
        for (size_t j = 0; j < sizeof data; j++)
            data[j] = (uint8_t)(i + j / 7);
        for (size_t j = 0; j < RECORDS; j++)
            store_le32(data + j * SIZE, SIZE - 4);
        struct kept_block kept = {bgzf_block_deflate(codec, data, sizeof data, compressed), sizeof data, 0};
        data[5 * SIZE + 50] ^= i == other;
        MUST(kept_block_append(&s->bytes, &kept, compressed) == 0);
        for (size_t j = 0; j < RECORDS; j++) {
            s->bytes.n += j ? kept_block_pad(s->bytes.n) : 0;
            s->at[i * RECORDS + j] = s->bytes.n;
            MUST(byte_buffer_append(&s->bytes, data + j * SIZE, SIZE) == 0);
        }
    }
    for (size_t i = 0; i < BLOCKS * RECORDS; i++)
        s->refs[i] = (struct record_ref){s->bytes.p + s->at[i], SIZE, 0, 1};
    bgzf_codec_free(codec);
    free(compressed);
}

struct writing {
    struct slice *slice;
    struct output_blocks *out;
    int result;
};

static void write_all(void *arg)
{
    struct writing *w = arg;
    struct record_list list = {.records = w->slice->refs, .n = BLOCKS * RECORDS};
    w->result = output_blocks_put(w->out, &list) < 0 ? -1 : output_blocks_finish(w->out);
}

static int write_slice(struct slice *slice, struct latch *latch)
{
    int fd = open("/dev/null", O_WRONLY);
    const struct engine engine = {.latch = latch, .n_threads = 2};
    struct bgzf_sink_options how = {.fd = fd, .path = "out", .form = SINK_BAM, .level = 1, .engine = &engine,
                                    .n_slots = 8, .copies = true};
    struct writing w = {slice, output_blocks_open(&how), -1};
    MUST(fd >= 0 && w.out);
    task_team(2, write_all, &w);
    output_blocks_close(w.out);
    close(fd);
    return w.result;
}

/* The blocks after the first three are copied, so only there it is noticed here: others compute the checksums. */
static void test_block_with_other_records_is_copied(void **state)
{
    (void)state;
    for (size_t other = 0; other <= BLOCKS; other++) {
        struct slice slice = {.bytes.n = 0};
        struct latch latch = {0};
        make_slice(&slice, other);
        assert_int_equal(write_slice(&slice, &latch), other >= 3 && other < BLOCKS ? -1 : 0);
        assert_int_equal(latch_tripped(&latch), other >= 3 && other < BLOCKS);
        free(slice.bytes.p);
    }
}

/* Steps of the stream only. */
static void test_stream_that_changes_its_source(void **state)
{
    (void)state;
    struct slice slice = {.bytes.n = 0};
    make_slice(&slice, BLOCKS);
    slice.refs[5 * RECORDS + 7].input = 2;
    struct copied_blocks copied = {.block = NULL};
    size_t whole = 0, breaks = 0, begins = 0;
    for (size_t i = 0; i < BLOCKS * RECORDS; i++) {
        struct copy_step step = copied_blocks_next(&copied, &slice.refs[i]);
        whole += step.copies && step.whole;
        breaks += step.breaks;
        begins += step.begins;
        assert_true(!step.breaks || i == 5 * RECORDS + 7);
        assert_true(!step.begins || i == 3 * RECORDS);
    }
    assert_int_equal(whole, 2);                  /* 3 and 4; and 6 and 7 have none before them */
    assert_int_equal(breaks, 1);
    assert_int_equal(begins, 1);
    free(slice.bytes.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_block_with_other_records_is_copied),
        cmocka_unit_test(test_stream_that_changes_its_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
