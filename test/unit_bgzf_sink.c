/* SPDX-License-Identifier: MIT */
/* The sink's promises to the owner of the bytes. unit_output_block.c tests the written bytes. */
#include "unit.h"
#include <omp.h>
#include <stdatomic.h>
#include "bgzf_omp.h"
#include "codec/bgzf_block.h"
#include "base/engine.h"
#include "base/latch.h"

enum { N_BLOCKS = 3000, N_SLOTS = 7 };
static const int team_sizes[] = {1, 2, 3, 8};

/* Blocks of few bytes, each of its own number. */
struct owner {
    struct bgzf_sink *sink;
    struct latch latch;
    int fail_at;                             /* the block that cannot be filled; -1: none */
    atomic_int made_late;                    /* blocks that it makes after an error */
    uint32_t number[N_SLOTS];                /* number of the slot's block; main thread, before it is handed out */
    uint32_t length[N_SLOTS];                /* deflate task */
    atomic_int filled[N_BLOCKS], deflated[N_BLOCKS];
    int n_placed, out_of_order;              /* the thread that holds the ticket counts */
    uint64_t next;
};

static uint32_t size_of(uint32_t number)
{
    return 4 + number % 50;
}

static uint32_t fill(void *arg, uint32_t slot, uint8_t *data)
{
    struct owner *o = arg;
    uint32_t number = o->number[slot];
    atomic_fetch_add(&o->filled[number], 1);
    if ((int)number == o->fail_at)
        latch_fail(&o->latch, "block %u cannot be filled", number);
    memset(data, 'A', size_of(number));
    memcpy(data, &number, sizeof number);
    return size_of(number);
}

static void deflated(void *arg, uint32_t slot, const uint8_t *data, const uint8_t *block, uint32_t length)
{
    struct owner *o = arg;
    struct bgzf_frame frame;
    uint32_t number = o->number[slot];
    bool sound = bgzf_block_frame(block, length, &frame) == BGZF_OK && frame.size == length
              && frame.inflated_size == size_of(number) && memcmp(data, &number, sizeof number) == 0;
    o->length[slot] = length;
    atomic_fetch_add(&o->deflated[number], sound);
}

static void placed(void *arg, uint32_t slot, uint64_t place, uint64_t next)
{
    struct owner *o = arg;
    o->out_of_order += o->number[slot] != (uint32_t)o->n_placed || place != o->next || next != place + o->length[slot];
    o->n_placed++;
    o->next = next;
}

static uint32_t make(void *arg, uint32_t slot, const uint8_t **bytes)
{
    static const uint8_t line[64];
    struct owner *o = arg;
    atomic_fetch_add(&o->made_late, latch_tripped(&o->latch));
    if ((int)o->number[slot] == o->fail_at)
        latch_fail(&o->latch, "block %u cannot be made", o->number[slot]);
    *bytes = line;
    return o->length[slot] = size_of(o->number[slot]);
}

static int put_all(struct owner *o)
{
    for (uint32_t i = 0, slot; i < N_BLOCKS; i++) {
        if (bgzf_sink_begin(o->sink, &slot) < 0)
            return -1;
        o->number[slot] = i;
        if (bgzf_sink_hand_out(o->sink) < 0)
            return -1;
    }
    return bgzf_sink_finish(o->sink);
}

/* Returns the result of bgzf_sink_finish(), or of the call that failed before it. */
static int write_all(struct owner *o, int fd, enum sink_form form, int level, int n_threads, int fail_at)
{
    int result = -1;
    memset(o, 0, sizeof *o);
    o->fail_at = fail_at;
    const struct engine engine = {.latch = &o->latch, .n_threads = n_threads};
    struct bgzf_sink_options options = {
        .fd = fd,
        .path = "the output",
        .form = form,
        .level = level,
        .n_slots = N_SLOTS,
        .piece_size = 1 << 16,
        .engine = &engine,
        .fill = fill,
        .deflated = deflated,
        .make = make,
        .placed = placed,
        .arg = o,
    };
    o->sink = bgzf_sink_open(&options);
    MUST(o->sink);
    #pragma omp parallel num_threads(n_threads)
    if (omp_get_thread_num() == 0)
    result = put_all(o);
    bgzf_sink_close(o->sink);
    return result;
}

static void test_block_is_filled_twice_or_gets_its_place_out_of_order(void **state)
{
    (void)state;
    static const int levels[] = {0, 1};      /* stored data are written to their final place */
    static struct owner o;
    for (size_t l = 0; l < N_OF(levels); l++)
        for (size_t i = 0; i < N_OF(team_sizes); i++) {
            int fd = unit_temp_file();
            assert_int_equal(write_all(&o, fd, SINK_BAM, levels[l], team_sizes[i], -1), 0);
            for (int b = 0; b < N_BLOCKS; b++) {
                assert_int_equal(o.filled[b], 1);
                assert_int_equal(o.deflated[b], 1);
            }
            assert_int_equal(o.n_placed, N_BLOCKS);
            assert_int_equal(o.out_of_order, 0);
            struct unit_bytes file = unit_read_file(fd);
            assert_int_equal(file.n, o.next + BGZF_EOF_SIZE);
            unit_free(&file);
            close(fd);
        }
}

static void test_block_that_failed_gets_a_place(void **state)
{
    (void)state;
    static struct owner o;
    static const int fail_at[] = {0, N_SLOTS, N_BLOCKS - 1};
    for (size_t f = 0; f < N_OF(fail_at); f++)
        for (size_t i = 0; i < N_OF(team_sizes); i++) {
            int fd = unit_temp_file();
            assert_int_equal(write_all(&o, fd, SINK_BAM, 1, team_sizes[i], fail_at[f]), -1);
            assert_true(o.n_placed <= fail_at[f]);
            assert_int_equal(o.out_of_order, 0);
            close(fd);
        }
}

/* Some threads may be working when the error comes. Blocks handed out after it are not made. */
static void test_text_is_made_after_an_error(void **state)
{
    (void)state;
    static struct owner o;
    for (size_t i = 0; i < N_OF(team_sizes); i++) {
        int fd = unit_temp_file();
        assert_int_equal(write_all(&o, fd, SINK_SAM, 1, team_sizes[i], N_SLOTS), -1);
        assert_true(o.made_late < team_sizes[i]);
        assert_true(o.n_placed <= N_SLOTS);
        close(fd);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_block_is_filled_twice_or_gets_its_place_out_of_order),
        cmocka_unit_test(test_block_that_failed_gets_a_place),
        cmocka_unit_test(test_text_is_made_after_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
