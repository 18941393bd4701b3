/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "read/chunk_pool.h"
#include "unit.h"

enum { INPUTS = 3, OWN_CHUNKS = 2, OWN_SLICES = 7, SHARED = 20, BORROWS = 18, TEXT = 1000 };

static void open_pool(struct chunk_pool *pool, struct chunk_borrower borrowers[INPUTS])
{
    struct chunk_pool_options how = {INPUTS, OWN_CHUNKS, OWN_SLICES, BORROWS, SHARED, TEXT};
    assert_int_equal(chunk_pool_open(pool, &how), 0);
    for (size_t i = 0; i < INPUTS; i++)
        borrowers[i] = (struct chunk_borrower){.pool = pool};
}

/* Fills as many chunks as it may, and keeps as many slices. Returns the number of chunks. */
static size_t fill(struct chunk_borrower *borrower, size_t *chunks, size_t *slices)
{
    while (chunk_pool_may_fill(borrower, *chunks))
        chunk_pool_fills(borrower, ++*chunks);
    while (chunk_pool_may_keep(borrower, *slices))
        chunk_pool_keeps(borrower, ++*slices);
    assert_int_equal(*slices - OWN_SLICES, *chunks - OWN_CHUNKS);
    return *chunks;
}

static void leave(struct chunk_borrower *borrower, size_t n)
{
    while (n-- > 0)
        chunk_pool_note(borrower);
}

/* A gather merges one input at a time. */
static void test_input_whose_turn_it_is_gets_few_chunks(void **state)
{
    (void)state;
    struct chunk_pool pool;
    struct chunk_borrower borrowers[INPUTS];
    size_t chunks[INPUTS] = {0}, slices[INPUTS] = {0};
    open_pool(&pool, borrowers);
    for (size_t i = 0; i < INPUTS; i++)
        assert_int_equal(fill(&borrowers[i], &chunks[i], &slices[i]), OWN_CHUNKS);
    for (size_t live = 0; live < INPUTS; live++) {
        leave(&borrowers[live], 3);
        assert_int_equal(fill(&borrowers[live], &chunks[live], &slices[live]), OWN_CHUNKS + 3);
        leave(&borrowers[live], 100);
        assert_int_equal(fill(&borrowers[live], &chunks[live], &slices[live]), OWN_CHUNKS + SHARED * 4 / 5);
        for (size_t i = 0; i < INPUTS; i++)      /* those that wait, and those whose turn is over */
            assert_int_equal(fill(&borrowers[i], &chunks[i], &slices[i]), i == live ? chunks[i] : OWN_CHUNKS);
        chunk_pool_fills(&borrowers[live], chunks[live] = 0);
        chunk_pool_keeps(&borrowers[live], slices[live] = 0);
        assert_true(pool.chunks == SHARED && pool.slices == SHARED);
    }
    chunk_pool_close(&pool);
}

static void test_inputs_merged_together_share_unevenly(void **state)
{
    (void)state;
    struct chunk_pool pool;
    struct chunk_borrower borrowers[INPUTS];
    size_t chunks[INPUTS] = {0}, slices[INPUTS] = {0};
    open_pool(&pool, borrowers);
    for (size_t round = 0; round < 2 * SHARED; round++)
        leave(&borrowers[round % INPUTS], 1);
    for (size_t i = 0; i < INPUTS; i++)
        assert_in_range(fill(&borrowers[i], &chunks[i], &slices[i]), OWN_CHUNKS + 4, OWN_CHUNKS + SHARED / INPUTS + 1);
    chunk_pool_close(&pool);
}

/* An input that waits with later records keeps its chunks, and the others can still continue. */
static void test_input_that_waits_keeps_all(void **state)
{
    (void)state;
    struct chunk_pool pool;
    struct chunk_borrower borrowers[INPUTS];
    size_t chunks[INPUTS] = {0}, slices[INPUTS] = {0};
    open_pool(&pool, borrowers);
    leave(&borrowers[0], 100);
    fill(&borrowers[0], &chunks[0], &slices[0]);
    leave(&borrowers[1], 100);
    assert_in_range(fill(&borrowers[1], &chunks[1], &slices[1]), OWN_CHUNKS + 2, OWN_CHUNKS + SHARED);
    assert_true(pool.chunks < SHARED && borrowers[0].chunks + borrowers[1].chunks + pool.chunks == SHARED);
    assert_int_equal(borrowers[0].n_recent, 0);
    chunk_pool_close(&pool);
}

/* Memory for records of this size, as long records leave it. */
static struct record_slice records_of(size_t size)
{
    struct record_slice s = {.n = 1};
    assert_int_equal(byte_buffer_reserve(&s.records, size), 0);
    s.records.n = size;
    return s;
}

static void test_memory_is_lost_or_stays_large(void **state)
{
    (void)state;
    struct chunk_pool pool;
    struct chunk_borrower borrowers[INPUTS];
    struct chunk_text text = {.bytes = malloc(TEXT)}, again;
    struct record_slice records;
    open_pool(&pool, borrowers);
    assert_false(chunk_pool_take_text(&pool, &again));
    chunk_pool_put_text(&pool, text);
    chunk_pool_put_text(&pool, (struct chunk_text){.bytes = NULL});
    assert_true(chunk_pool_take_text(&pool, &again) && again.bytes == text.bytes);
    chunk_pool_put_text(&pool, again);
    assert_false(chunk_pool_take_records(&pool, &records));
    for (size_t i = 0; i < 2 * pool.most_records; i++)
        chunk_pool_put_records(&pool, records_of(3 * TEXT));
    assert_int_equal(pool.n_records, pool.most_records);
    assert_true(chunk_pool_take_records(&pool, &records));
    assert_true(records.records.max <= TEXT && records.n == 0 && records.records.n == 0);
    record_slice_free(&records);
    chunk_pool_close(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_input_whose_turn_it_is_gets_few_chunks),
        cmocka_unit_test(test_inputs_merged_together_share_unevenly),
        cmocka_unit_test(test_input_that_waits_keeps_all),
        cmocka_unit_test(test_memory_is_lost_or_stays_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
