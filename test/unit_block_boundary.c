/* SPDX-License-Identifier: MIT */
/* Blocks across ranks: the records of a rank that are in an earlier rank's block, and those of later ranks in its own
 * last block. */
#include "unit.h"
#include "base/endian_io.h"
#include "mpi/block_boundary.h"
#include "no_mpi/mpi.h"

enum { RANKS_MOST = 9, RECORDS_MOST = 3000 };

struct world {
    struct unit_bytes bytes;                     /* the records, in the order of all ranks */
    struct record_ref records[RECORDS_MOST];
    size_t n, first[RANKS_MOST + 1];             /* the first record of each rank */
    bool keeps;
    int owner[RECORDS_MOST];                     /* the rank in which its block began; by brute force */
    int size;
    size_t n_lead[RANKS_MOST], n_tail[RANKS_MOST];   /* the results */
    struct unit_bytes tail[RANKS_MOST];
};

static struct world world;

static void be_rank(int rank, void *arg)
{
    struct world *w = arg;
    struct mpi_team team = {.rank = rank, .size = w->size};
    struct block_boundary boundary;
    struct record_ref tail[BLOCK_BOUNDARY_RECORDS];
    size_t at = w->first[rank], end = w->first[rank + 1];
    MUST(block_boundary_open(&boundary, end - at, w->keeps) == 0);
    while (at < end) {                           /* in lists of 7 */
        size_t n = end - at < 7 ? end - at : 7;
        block_boundary_add(&boundary, &(struct record_list){.records = w->records + at, .n = n});
        at += n;
    }
    block_boundary_settle(&boundary, &team);
    MUST(boundary.kept.n == (w->keeps ? end - w->first[rank] : 0));
    for (size_t i = 0; i < boundary.kept.n; i++)
        MUST(boundary.kept.records[i].data == w->records[w->first[rank] + i].data);
    w->n_lead[rank] = boundary.n_lead;
    w->n_tail[rank] = block_boundary_tail(&boundary, tail);
    for (size_t i = 0; i < w->n_tail[rank]; i++)
        unit_append(&w->tail[rank], tail[i].data, tail[i].size);
    block_boundary_close(&boundary);
}

static void add_record(uint64_t *seed, size_t size)
{
    uint8_t *p = unit_more(&world.bytes, size);
    unit_fill(seed, p, size);
    store_le32(p, (uint32_t)size - 4);
    world.records[world.n++].size = (uint32_t)size;
}

/* Deals the records to ranks, some of which get none, and follows the blocks from the first record on. */
static void deal(uint64_t *seed, int size, bool unfair)
{
    size_t at = 0, filled = 0;
    world.size = size;
    for (int r = 0; r <= size; r++)
        world.first[r] = r == size ? world.n : world.n * (size_t)r / (size_t)size;
    for (int r = 1; unfair && r < size; r++)     /* several parts of no records, or of one */
        world.first[r] = unit_below(seed, 2) ? world.first[r - 1] : world.first[r - 1] + (world.first[r - 1] < world.n);
    for (size_t i = 0, rank = 0; i < world.n; i++) {
        size_t n = world.records[i].size;
        world.records[i].data = world.bytes.data + at;
        at += n;
        while (i >= world.first[rank + 1])
            rank++;
        bool begins = i == 0 || filled + n > BGZF_FILL;
        world.owner[i] = begins ? (int)rank : world.owner[i - 1];
        for (filled = begins ? n : filled + n; filled > BGZF_FILL;)
            filled -= BGZF_FILL;
    }
}

static void expect_blocks(bool keeps)
{
    world.keeps = keeps;
    unit_ranks(world.size, be_rank, &world);
    for (int r = 0; r < world.size; r++) {
        size_t lead = 0, tail = 0, bytes = 0;
        for (size_t i = world.first[r]; i < world.first[r + 1]; i++)
            lead += world.owner[i] < r;
        for (size_t i = world.first[r + 1]; i < world.n; i++)
            if (world.owner[i] == r) {
                assert_memory_equal(world.tail[r].data + bytes, world.records[i].data, world.records[i].size);
                bytes += world.records[i].size;
                tail++;
            }
        assert_int_equal(world.n_lead[r], lead);
        assert_int_equal(world.n_tail[r], tail);
        assert_int_equal(world.tail[r].n, bytes);
        unit_free(&world.tail[r]);
    }
}

static void expect_blocks_as_of_one_process(void)
{
    expect_blocks(false);
    expect_blocks(true);
}

static void begin(void)
{
    unit_free(&world.bytes);
    world.n = 0;
}

static void test_block_of_two_ranks_is_cut_otherwise(void **state)
{
    (void)state;
    static const struct { uint32_t least, spread; } sizes[] = {
        {37, 1}, {37, 300}, {200, 1500}, {20000, 30000}, {BGZF_FILL / 2, 2}, {BGZF_FILL - 1, 3}, {50000, 200000},
        {37, 2 * BGZF_FILL}};
    uint64_t seed = 1;
    for (int turn = 0; turn < 48; turn++) {
        size_t k = (size_t)turn % N_OF(sizes), n = 1 + unit_below(&seed, sizes[k].spread > 2000 ? 60 : RECORDS_MOST);
        begin();
        while (world.n < n)
            add_record(&seed, sizes[k].least + unit_below(&seed, sizes[k].spread));
        deal(&seed, 1 + (int)unit_below(&seed, RANKS_MOST), turn / (int)N_OF(sizes) % 3 == 2);
        expect_blocks_as_of_one_process();
    }
}

/* A record that fills its block to the last byte, or ends one byte before or after that. */
static void test_full_block_takes_one_more(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {BGZF_FILL - 37, BGZF_FILL - 38, BGZF_FILL - 36, BGZF_FILL, 2 * BGZF_FILL,
                                     2 * BGZF_FILL - 37, 3 * BGZF_FILL + 1};
    uint64_t seed = 2;
    for (size_t k = 0; k < N_OF(sizes); k++)
        for (int size = 1; size <= RANKS_MOST; size++) {
            begin();
            for (int i = 0; i < 6; i++) {
                add_record(&seed, sizes[k]);
                add_record(&seed, 37);
                add_record(&seed, 37);
            }
            deal(&seed, size, false);
            expect_blocks_as_of_one_process();
        }
}

static void test_ranks_without_records_lose_those_from_behind(void **state)
{
    (void)state;
    uint64_t seed = 3;
    for (int where = 0; where < RANKS_MOST; where++) {
        begin();
        for (int i = 0; i < 5; i++)
            add_record(&seed, 1000);
        deal(&seed, RANKS_MOST, false);
        for (int r = 1; r < RANKS_MOST; r++)     /* the first record, then nothing up to `where` */
            world.first[r] = r <= where ? 1 : (size_t)(r - where < 4 ? 1 + r - where : 5);
        for (size_t i = 0; i < world.n; i++)
            world.owner[i] = 0;
        expect_blocks_as_of_one_process();
    }
    begin();
    deal(&seed, RANKS_MOST, false);
    expect_blocks_as_of_one_process();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_block_of_two_ranks_is_cut_otherwise),
        cmocka_unit_test(test_full_block_takes_one_more),
        cmocka_unit_test(test_ranks_without_records_lose_those_from_behind),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unit_free(&world.bytes);
    return failed;
}
