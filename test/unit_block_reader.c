/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "unit.h"
#include "base/engine.h"
#include "base/latch.h"
#include "read/block_reader.h"
#include "read/record_slice.h"

enum { ARENA_SIZE = 1 << 20, N_REF = 3, N_SLICES = 3 };

/* ---- a producer that gives slices of one record each ---- */

struct producer {
    uint32_t given;
    uint32_t broken;             /* number of the slice whose record has a reference that does not exist */
};

static uint64_t offset_of(uint32_t number)
{
    return 1000 * (number + 1);
}

static enum chunk_state advance(void *producer)
{
    return ((struct producer *)producer)->given < N_SLICES ? CHUNK_MADE : CHUNK_NONE;
}

static int take(void *arg, struct record_slice *slice)
{
    struct producer *producer = arg;
    struct unit_bytes record = {NULL, 0, 0};
    unit_append_smallest(&record, 7);
    if (producer->given == producer->broken)
        store_le32(record.data + 4, N_REF);
    record_slice_clear(slice);
    MUST(byte_buffer_append(&slice->records, record.data, record.n) == 0 && record_slice_note(slice, 0) == 0);
    slice->offset = offset_of(producer->given++);
    unit_free(&record);
    return 0;
}

static bool help(void *producer)
{
    (void)producer;
    return false;
}

/* ---- reading ---- */

static struct latch latch;
static const struct engine engine = {.latch = &latch, .n_threads = 1};

/* Reads all of the producer's records. -1: failed, and the error is in the latch. */
static int read_all(struct producer *producer)
{
    struct input in = {.name = "in.sam"};
    in.stream = (struct record_stream){.advance = advance, .take = take, .help = help, .producer = producer};
    struct inputs inputs = {.each = &in, .n = 1};
    /* A slice is exchanged as soon as it is copied. */
    struct block_reader_options how = {.inputs = &inputs, .n_slots = N_SLICES, .n_lent = 1, .engine = &engine};
    struct block_reader reader;
    struct bam_arena arena;
    size_t size;
    int found;
    memset(&latch, 0, sizeof latch);
    MUST(bam_arena_init(&arena, ARENA_SIZE) == 0 && block_reader_open(&reader, &how) == 0);
    arena.n_ref = N_REF;
    block_reader_set_arena(&reader, &arena);
    MUST(block_reader_begin(&reader, &in) == 0 && block_reader_start(&reader, NULL) == 0);
    while ((found = block_reader_peek(&reader, &size)) > 0)
        block_reader_hand_out(&reader, size);
    while (found == 0 && block_reader_take(&reader, true) > 0)
        ;
    assert_int_equal(arena.n_records, N_SLICES);
    block_reader_close(&reader);
    bam_arena_free(&arena);
    return latch_tripped(&latch) ? -1 : 0;
}

static void test_slices_come_whole(void **state)
{
    (void)state;
    struct producer producer = {.broken = N_SLICES};
    assert_int_equal(read_all(&producer), 0);
}

/* When a broken record is reported, its slice has the records of a later place in the file. */
static void test_offset_of_a_broken_record_is_that_of_a_later_slice(void **state)
{
    (void)state;
    for (uint32_t broken = 0; broken < N_SLICES; broken++) {
        struct producer producer = {.broken = broken};
        char place[64];
        snprintf(place, sizeof place, "file offset %u", (unsigned)offset_of(broken));
        assert_int_equal(read_all(&producer), -1);
        assert_non_null(strstr(latch.message, place));
        snprintf(place, sizeof place, "record %u ", (unsigned)broken + 1);
        assert_non_null(strstr(latch.message, place));
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slices_come_whole),
        cmocka_unit_test(test_offset_of_a_broken_record_is_that_of_a_later_slice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
