/* SPDX-License-Identifier: MIT */
/* Cuts of the order for the ranks: equal shares for any keys, and each record for one rank. */
#include "unit.h"
#include "base/endian_io.h"
#include "base/latch.h"
#include "mpi/record_shares.h"
#include "mpi/splitters.h"
#include "no_mpi/mpi.h"

enum { RANKS_MOST = 16, RECORDS_MOST = 40000 };   /* the second: of a rank */

/* The sorted keys of a rank, as listed by two arenas with some sublists each. */
struct part {
    struct bam_key keys[RECORDS_MOST];
    size_t n;
};

struct world {
    struct part parts[RANKS_MOST];
    struct splitters found[RANKS_MOST];
    struct record_shares shares[RANKS_MOST];   /* unless as_run */
    struct sort_rule *rule;      /* compares records of equal keys; NULL: they tie */
    const uint8_t *base;         /* base of the records that it compares */
    int size;
    size_t each;                 /* bytes of each record; 0: they differ */
    bool as_run;                 /* the records were spilled, in slices of this many */
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
    struct mpi_team team = {.rank = rank, .size = w->size};
    struct latch latch = {0};
    static const size_t room = RECORDS_MOST;
    const struct bam_key *keys = part->keys, *half = keys + part->n / 3, *end = keys + part->n;
    struct merge_way lists[2] = {{keys, half, w->base}, {half, end, w->base}};
    struct merge_runs runs = {.n = w->as_run, .reader = part, .first_key = first_key};
    struct records_read how = {
        .team = &team,
        .lists = lists,
        .n_lists = w->as_run ? 0 : 2,
        .bytes = w->total / (uint64_t)w->size,
        .n_threads = 1,
        .rule = w->rule,
        .runs = &runs,
        .slice_size = RECORD * SLICE_RECORDS,
        .latch = &latch,
    };
    MUST(part->n <= room);
    MUST(splitters_make(&w->found[rank], &how) == 0 && !latch_tripped(&latch));
    if (w->as_run)
        return;
    MUST(record_shares_make(&w->shares[rank], &w->found[rank], &how) == 0);
    record_shares_report(&w->shares[rank], &team);
}

/* The ranks divide their records by the splitters, and know the shares. n: records that each rank gets; sizes must be
 * equal, because share_out() takes ties in another order. */
static void expect_shares(const size_t *n)
{
    for (int to = 0; to < world.size; to++) {
        const struct record_shares *mine = &world.shares[to];
        uint64_t records = 0;
        for (int r = 0; r < world.size; r++)
            records += world.shares[r].records[to];
        assert_int_equal(records, n[to]);
        assert_int_equal(mine->records_come, records - mine->records[to]);
        assert_int_equal(mine->bytes_come, mine->records_come * world.each);
    }
}

static void expect_largest(void)
{
    for (int r = 0; r < world.size; r++) {
        const struct part *part = &world.parts[r];
        uint64_t largest = 0;
        for (size_t i = 0; i < part->n; i++) {
            uint64_t size = bam_key_record_size(world.base, part->keys[i]);
            largest = size > largest ? size : largest;
        }
        assert_int_equal(world.shares[r].largest, largest);
    }
}

static void drop_splitters(void)
{
    for (int r = 0; r < world.size; r++) {
        splitters_free(&world.found[r]);
        record_shares_free(&world.shares[r]);
    }
}

/* n records for each rank; key(): of record i of a rank. */
static void make(int size, size_t n, uint64_t (*key)(uint64_t *seed, int rank, size_t i), uint32_t spread)
{
    uint64_t seed = (uint64_t)size;
    world.size = size;
    world.total = 0;
    world.as_run = false;
    world.each = spread ? 0 : RECORD;
    world.rule = NULL;
    world.base = NULL;
    for (int r = 0; r < size; r++) {
        struct part *part = &world.parts[r];
        part->n = n;
        for (size_t i = 0; i < n; i++) {
            uint64_t bytes = RECORD + (spread ? unit_below(&seed, spread) : 0);
            part->keys[i] = (struct bam_key){key(&seed, r, i), bam_key_place(0, bytes)};
            world.total += bytes;
        }
        /* Each of the two arenas is sorted separately. */
        qsort(part->keys, n / 3, sizeof *part->keys, key_before);
        qsort(part->keys + n / 3, n - n / 3, sizeof *part->keys, key_before);
    }
}

/* The rank for a record, by the definition in splitters.h. tied: bytes of this rank's records before it that tie with
 * it. */
static int rank_for(const struct splitters *s, struct bam_key key, int rank, uint64_t tied)
{
    size_t to = 0;
    for (; to < s->n; to++) {
        const struct splitter *at = &s->each[to];
        int order = splitter_compare(at, world.rule, key.sort, bam_key_record(world.base, key));
        if (order < 0 || (order == 0 && (rank < at->rank || (rank == at->rank && tied < at->bytes))))
            break;
    }
    return (int)to;
}

static int in_whole_order(const void *a, const void *b)
{
    const struct bam_key *x = a, *y = b;
    struct bam_key_order order = {world.rule, world.base};
    return bam_key_less(&order, x, y) ? -1 : bam_key_less(&order, y, x);
}

static bool is_tie(struct bam_key x, struct bam_key y)
{
    return x.sort == y.sort && (!world.rule || sort_key_compare(world.rule,
        (const struct bam_record *)bam_key_record(world.base, x), (const struct bam_record *)bam_key_record(world.base, y)) == 0);
}

static void expect_same_splitters(void)
{
    for (int r = 1; r < world.size; r++)
        for (size_t i = 0; i < world.found[0].n; i++) {
            const struct splitter *x = &world.found[r].each[i], *y = &world.found[0].each[i];
            assert_true(x->key == y->key && x->bytes == y->bytes && x->rank == y->rank);
            assert_int_equal(!x->record, !y->record);
            if (x->record)
                assert_memory_equal(x->record, y->record, bam_record_size((const struct bam_record *)x->record));
        }
}

/* Bytes and records for each rank. */
static void share_out(uint64_t *bytes, size_t *n)
{
    static struct bam_key sorted[RECORDS_MOST];
    unit_ranks(world.size, be_rank, &world);
    expect_same_splitters();
    memset(bytes, 0, sizeof *bytes * RANKS_MOST);
    memset(n, 0, sizeof *n * RANKS_MOST);
    for (int r = 0; r < world.size; r++) {
        const struct part *part = &world.parts[r];
        uint64_t tied = 0;
        int last = 0;
        memcpy(sorted, part->keys, part->n * sizeof *sorted);
        qsort(sorted, part->n, sizeof *sorted, in_whole_order);
        for (size_t i = 0; i < part->n; i++) {
            tied = i > 0 && is_tie(sorted[i], sorted[i - 1]) ? tied : 0;
            int to = rank_for(&world.found[0], sorted[i], r, tied);
            assert_true(to >= last);             /* a merged record never goes to an earlier rank than the one before */
            last = to;
            tied += bam_key_record_size(world.base, sorted[i]);
            bytes[to] += bam_key_record_size(world.base, sorted[i]);
            n[to]++;
        }
    }
    if (!world.as_run)
        expect_largest();
    if (!world.as_run && world.each)
        expect_shares(n);
    drop_splitters();
}

static void expect_equal_shares(void)
{
    uint64_t bytes[RANKS_MOST], each = world.total / (uint64_t)world.size;
    size_t n[RANKS_MOST];
    share_out(bytes, n);
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
            make(sizes[s], 6000, kinds[k], 0);
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

/* Only the first rank has records, or one rank has none. */
static void test_few_records_go_to_one_rank(void **state)
{
    (void)state;
    uint64_t bytes[RANKS_MOST];
    size_t n[RANKS_MOST], total = 0;
    for (size_t k = 0; k < N_OF(kinds); k++) {
        make(16, 10, kinds[k], 0);
        for (int r = 1; r < world.size; r++)
            world.parts[r].n = 0;
        share_out(bytes, n);
        for (int r = 0; r < world.size; r++) {
            assert_in_range(n[r], 0, 1);
            total += n[r];
        }
    }
    assert_int_equal(total, 10 * N_OF(kinds));
    make(16, 0, any_key, 0);
    share_out(bytes, n);
}

static void test_longest_record_of_a_rank_is_not_the_longest_of_all_sublists(void **state)
{
    (void)state;
    uint64_t bytes[RANKS_MOST];
    size_t n[RANKS_MOST];
    make(16, 10, any_key, 400);
    share_out(bytes, n);
}

/* ---- records that are compared ---- */

enum { NAMED = 64 };             /* bytes of a record with a name of 20 digits, two bases, and the rest */

/* All records share a key, and have different names: reversed or not, or a few. */
static void make_named(int size, size_t n, uint32_t distinct, uint8_t *records)
{
    static const struct sort_order by_name = {.by = SORT_NAME_ASCII};
    uint64_t seed = (uint64_t)size + n;
    sam_hdr_t *header = sam_hdr_init();
    make(size, n, is_unmapped, 0);
    world.rule = sort_rule_new(&by_name, header);
    world.base = records;
    world.each = NAMED;
    world.total = n * (uint64_t)size * NAMED;
    sam_hdr_destroy(header);
    for (int r = 0; r < size; r++)
        for (size_t i = 0; i < n; i++) {
            uint8_t *p = records + ((size_t)r * n + i) * NAMED;
            struct bam_record *record = (struct bam_record *)p;
            memset(p, 0, NAMED);
            store_le32(record->block_size, NAMED - 4);
            record->name_len = 21;
            store_le32(record->seq_len, 2);
            snprintf((char *)record->data, 21, "%020u", unit_below(&seed, distinct));
            world.parts[r].keys[i] = (struct bam_key){UINT64_MAX, bam_key_place((uint64_t)(p - records), NAMED)};
        }
    for (int r = 0; r < size; r++) {
        struct part *part = &world.parts[r];
        qsort(part->keys, n / 3, sizeof *part->keys, in_whole_order);
        qsort(part->keys + n / 3, n - n / 3, sizeof *part->keys, in_whole_order);
    }
}

static void test_records_of_one_key_stay_on_one_rank(void **state)
{
    (void)state;
    static const uint32_t distinct[] = {1000000000, 5000, 3, 1};
    static const int sizes[] = {2, 3, 7, 16};
    uint8_t *records = must_alloc((size_t)16 * 6000 * NAMED);
    for (size_t d = 0; d < N_OF(distinct); d++)
        for (size_t s = 0; s < N_OF(sizes); s++) {
            make_named(sizes[s], 6000, distinct[d], records);
            expect_equal_shares();
            sort_rule_free(world.rule);
        }
    free(records);
}

/* No record is in memory, so only keys are known: records of one key stay together, all on one rank or the next. */
static void test_records_of_one_key_that_left_memory_are_parted(void **state)
{
    (void)state;
    uint64_t bytes[RANKS_MOST];
    size_t n[RANKS_MOST], holders = 0;
    uint8_t *records = must_alloc((size_t)4 * 12000 * NAMED);
    make_named(4, 12000, 1000000000, records);
    world.as_run = true;
    share_out(bytes, n);
    for (int r = 0; r < world.size; r++)
        holders += n[r] > 0;
    assert_int_equal(holders, 1);
    sort_rule_free(world.rule);
    free(records);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_share_of_a_rank_is_too_large),
        cmocka_unit_test(test_share_of_a_rank_that_spilled_is_too_large),
        cmocka_unit_test(test_few_records_go_to_one_rank),
        cmocka_unit_test(test_longest_record_of_a_rank_is_not_the_longest_of_all_sublists),
        cmocka_unit_test(test_records_of_one_key_stay_on_one_rank),
        cmocka_unit_test(test_records_of_one_key_that_left_memory_are_parted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
