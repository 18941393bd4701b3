/* SPDX-License-Identifier: MIT */
/* Where the order is cut for the ranks: equal shares whatever the keys are, and each record for one rank. */
#include "unit.h"
#include "mpi/splitters.c"

enum { RANKS_MOST = 16, RECORDS_MOST = 40000 };   /* the second: of a rank */

/* The sorted keys of a rank, as two arenas with some sublists each would list them. */
struct part {
    struct bam_key keys[RECORDS_MOST];
    size_t n;
};

struct world {
    struct part parts[RANKS_MOST];
    struct splitter found[RANKS_MOST][RANKS_MOST];
    int size;
    bool keys_decide, as_run;    /* as_run: the records have left memory, in slices of so many */
    uint64_t total;
};

enum { RECORD = 250, SLICE_RECORDS = 20 };       /* bytes; records of a slice */

static struct world world;

static int key_before(const void *a, const void *b)
{
    const struct bam_key *x = a, *y = b;
    return x->sort < y->sort ? -1 : x->sort > y->sort;
}

static bool first_key(const void *reader, size_t run, size_t slice, uint64_t *key)
{
    const struct part *part = reader;
    if (run > 0 || slice * SLICE_RECORDS >= part->n)
        return false;
    *key = part->keys[slice * SLICE_RECORDS].sort;
    return true;
}

static void be_rank(int rank, void *arg)
{
    struct world *w = arg;
    struct part *part = &w->parts[rank];
    struct mpi_team team = {rank, w->size};
    struct latch latch = {0};
    static const size_t room = RECORDS_MOST;
    size_t half = part->n / 3, n_lists = 0;
    struct bam_sublist lists[2] = {{part->keys, half}, {part->keys + half, part->n - half}};
    struct bam_arena arenas[2] = {{.base = NULL}, {.base = NULL}};
    struct merge_runs runs = {.n = w->as_run, .reader = part, .first_key = first_key};
    MUST(part->n <= room);
    for (int a = 0; a < 2 && !w->as_run; a++) {
        arenas[a].sublists = &lists[a];
        arenas[a].n_sublists = lists[a].n > 0;
        n_lists += arenas[a].n_sublists;
        for (size_t i = 0; i < lists[a].n; i++)
            arenas[a].walked += bam_key_record_size(NULL, lists[a].keys[i]);
    }
    MUST(splitters_make(w->found[rank], &team, arenas, &runs, RECORD * SLICE_RECORDS, w->keys_decide, &latch) == 0);
    MUST(!latch_tripped(&latch) && n_lists <= 2);
}

/* n records of each rank; key(): of record i of a rank. */
static void make(int size, size_t n, uint64_t (*key)(uint64_t *seed, int rank, size_t i), uint32_t spread)
{
    uint64_t seed = (uint64_t)size;
    world.size = size;
    world.total = 0;
    world.as_run = false;
    world.keys_decide = true;
    for (int r = 0; r < size; r++) {
        struct part *part = &world.parts[r];
        part->n = n;
        for (size_t i = 0; i < n; i++) {
            uint64_t bytes = RECORD + (spread ? unit_below(&seed, spread) : 0);
            part->keys[i] = (struct bam_key){key(&seed, r, i), bam_key_place(0, bytes)};
            world.total += bytes;
        }
        /* Each of the two arenas is sorted on its own. */
        qsort(part->keys, n / 3, sizeof *part->keys, key_before);
        qsort(part->keys + n / 3, n - n / 3, sizeof *part->keys, key_before);
    }
}

/* The rank that a record is for, by what splitters.h says. tied: bytes of those before it of this key and source. */
static int rank_for(const struct splitter *s, int size, uint64_t key, int source, uint64_t tied)
{
    int to = 0;
    for (; to < size - 1; to++) {
        bool with_key = key == s[to].key && (source < s[to].source || (source == s[to].source && tied < s[to].bytes));
        if (key < s[to].key || (world.keys_decide && with_key))
            break;
    }
    return to;
}

/* Bytes and records for each rank. */
static void share(uint64_t *bytes, size_t *n)
{
    static struct bam_key sorted[RECORDS_MOST];
    unit_ranks(world.size, be_rank, &world);
    for (int r = 1; r < world.size; r++)
        assert_memory_equal(world.found[r], world.found[0], sizeof(struct splitter) * (size_t)(world.size - 1));
    memset(bytes, 0, sizeof *bytes * RANKS_MOST);
    memset(n, 0, sizeof *n * RANKS_MOST);
    for (int r = 0; r < world.size; r++) {
        const struct part *part = &world.parts[r];
        uint64_t tied = 0;
        int last = 0;
        memcpy(sorted, part->keys, part->n * sizeof *sorted);
        qsort(sorted, part->n, sizeof *sorted, key_before);
        for (size_t i = 0; i < part->n; i++) {
            tied = i > 0 && sorted[i].sort == sorted[i - 1].sort ? tied : 0;
            int to = rank_for(world.found[0], world.size, sorted[i].sort, r, tied);
            assert_true(to >= last);             /* what a rank merges goes to the ranks in turn */
            last = to;
            tied += bam_key_record_size(NULL, sorted[i]);
            bytes[to] += bam_key_record_size(NULL, sorted[i]);
            n[to]++;
        }
    }
}

static void expect_equal_shares(void)
{
    uint64_t bytes[RANKS_MOST], each = world.total / (uint64_t)world.size;
    size_t n[RANKS_MOST];
    share(bytes, n);
    for (int r = 0; r < world.size; r++)
        assert_in_range(bytes[r], each - each / 50, each + each / 50);
}

static uint64_t any_key(uint64_t *seed, int rank, size_t i)
{
    (void)rank, (void)i;
    return unit_random(seed) >> 20;
}

static uint64_t half_is_one(uint64_t *seed, int rank, size_t i)
{
    return i % 2 ? (uint64_t)1 << 43 : any_key(seed, rank, i);
}

static uint64_t is_sorted(uint64_t *seed, int rank, size_t i)
{
    (void)seed;
    return (uint64_t)rank * RECORDS_MOST + i;
}

static uint64_t is_reversed(uint64_t *seed, int rank, size_t i)
{
    (void)seed;
    return (uint64_t)(RANKS_MOST - rank) * RECORDS_MOST - i;
}

static uint64_t is_unmapped(uint64_t *seed, int rank, size_t i)
{
    (void)seed, (void)rank, (void)i;
    return UINT64_MAX;
}

static uint64_t of_few(uint64_t *seed, int rank, size_t i)
{
    (void)rank, (void)i;
    return unit_below(seed, 3);
}

static uint64_t (*const kinds[])(uint64_t *, int, size_t) = {any_key, half_is_one, is_sorted, is_reversed, is_unmapped, of_few};

static void test_share_of_a_rank_is_too_large(void **state)
{
    (void)state;
    static const int sizes[] = {1, 2, 3, 7, 16};
    for (size_t k = 0; k < N_OF(kinds); k++)
        for (size_t s = 0; s < N_OF(sizes); s++) {
            make(sizes[s], 12000, kinds[k], 0);
            expect_equal_shares();
        }
    for (size_t k = 0; k < N_OF(kinds); k++) {
        make(5, RECORDS_MOST, kinds[k], 400);
        expect_equal_shares();
    }
}

static void test_share_of_a_rank_that_spilled_is_too_large(void **state)
{
    (void)state;
    for (size_t k = 0; k < N_OF(kinds); k++) {
        make(7, RECORDS_MOST, kinds[k], 0);
        for (int r = 0; r < world.size; r++)
            qsort(world.parts[r].keys, world.parts[r].n, sizeof(struct bam_key), key_before);
        world.as_run = true;
        expect_equal_shares();
    }
}

/* Only the first rank has records, and one has none. */
static void test_few_records_go_to_one_rank(void **state)
{
    (void)state;
    uint64_t bytes[RANKS_MOST];
    size_t n[RANKS_MOST], total = 0;
    for (size_t k = 0; k < N_OF(kinds); k++) {
        make(16, 10, kinds[k], 0);
        for (int r = 1; r < world.size; r++)
            world.parts[r].n = 0;
        share(bytes, n);
        for (int r = 0; r < world.size; r++) {
            assert_in_range(n[r], 0, 1);
            total += n[r];
        }
    }
    assert_int_equal(total, 10 * N_OF(kinds));
    make(16, 0, any_key, 0);
    share(bytes, n);
}

/* Where records of one key are compared further, they must come to one rank. */
static void test_records_of_one_key_are_parted(void **state)
{
    (void)state;
    uint64_t bytes[RANKS_MOST];
    size_t n[RANKS_MOST];
    make(4, 12000, of_few, 100);
    world.keys_decide = false;
    share(bytes, n);
    for (int to = 0; to < world.size - 1; to++)
        assert_int_equal(world.found[0][to].bytes, 0);
    int holders = 0;
    for (int r = 0; r < world.size; r++)
        holders += n[r] > 0;
    assert_in_range(holders, 2, 3);
    make(7, 12000, any_key, 100);
    world.keys_decide = false;
    expect_equal_shares();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_share_of_a_rank_is_too_large),
        cmocka_unit_test(test_share_of_a_rank_that_spilled_is_too_large),
        cmocka_unit_test(test_few_records_go_to_one_rank),
        cmocka_unit_test(test_records_of_one_key_are_parted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
