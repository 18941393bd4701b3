/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include "sort/run_cut.h"

enum { N = 60, LISTS = 5 };

/* Some sublists of one arena, with equal keys within and among them. */
struct lists {
    struct bam_key keys[LISTS][N];
    struct bam_sublist list[LISTS];
};

static void make_lists(struct lists *l, uint32_t distinct, uint64_t seed)
{
    uint64_t place = 0;
    for (size_t i = 0; i < LISTS; i++) {
        uint64_t key = 0;
        for (size_t j = 0; j < N; j++) {
            key += unit_below(&seed, distinct);
            l->keys[i][j] = (struct bam_key){key, bam_key_place(place += 40, 40)};
        }
        l->list[i] = (struct bam_sublist){l->keys[i], N};
    }
}

static size_t find(const struct run_cut *cut, const struct bam_sublist *list, const uint8_t *base, size_t way)
{
    struct merge_way part = {list->keys, list->keys + list->n, base};
    return (size_t)(run_cut_find(cut, NULL, part, way) - list->keys);
}

/* Returns whether a key is before the cut, by the definition. */
static bool is_before(const struct bam_key *key, size_t way, const struct run_cut *cut)
{
    if (key->sort != cut->key.sort)
        return key->sort < cut->key.sort;
    return way == cut->way ? key->place < cut->key.place : way < cut->way;
}

static void test_cut_parts_every_list_where_its_keys_stop_being_before_it(void **state)
{
    (void)state;
    static const uint8_t one[1], two[1];
    struct lists l;
    for (uint32_t distinct = 1; distinct <= 4; distinct++) {
        make_lists(&l, distinct, distinct);
        for (size_t c = 0; c < LISTS * N; c++)
            for (size_t i = 0; i < LISTS; i++) {
                /* sublists of the cut's own arena, then runs and arenas on either side of it */
                struct run_cut cut = {l.keys[c / N][c % N], one, 3};
                const uint8_t *base = i < 3 ? one : two;
                size_t way = i < 3 ? 3 : i == 3 ? 0 : 9, at = find(&cut, &l.list[i], base, way);
                for (size_t j = 0; j < N; j++)
                    assert_int_equal(j < at, is_before(&l.keys[i][j], way, &cut));
            }
    }
}

static void test_cut_of_a_run_needs_no_record_where_keys_decide(void **state)
{
    (void)state;
    static const uint8_t base[1];
    struct bam_key keys[] = {{1, 0}, {2, 40 << BAM_KEY_SIZE_BITS}, {2, 80 << BAM_KEY_SIZE_BITS}, {3, 0}};
    struct bam_sublist list = {keys, 4};
    struct run_cut cut = {{2, 0}, NULL, 5};
    assert_int_equal(find(&cut, &list, base, 4), 3);         /* an older run's ties are before it */
    assert_int_equal(find(&cut, &list, base, 6), 1);
}

static void test_order_of_cuts(void **state)
{
    (void)state;
    static const uint8_t one[1], two[1];
    const struct run_cut cuts[] = {                          /* in order */
        {{1, 900}, one, 7}, {{2, 800}, two, 3}, {{2, 700}, one, 4}, {{2, 701}, one, 4}, {{3, 0}, two, 3},
    };
    for (size_t i = 0; i < N_OF(cuts); i++)
        for (size_t j = 0; j < N_OF(cuts); j++)
            assert_int_equal(run_cut_before(&cuts[i], &cuts[j], NULL), i < j);
}

static void test_samples_are_sorted_and_evenly_spread(void **state)
{
    (void)state;
    struct lists l;
    struct bam_key samples[LISTS * N];
    make_lists(&l, 3, 9);
    struct bam_arena arena = {.sublists = l.list, .n_sublists = LISTS};
    for (size_t every = 1; every <= 2 * N; every++) {
        size_t n = run_cut_sample(&arena, every, samples, LISTS * N);
        assert_int_equal(n, every / 2 < N ? LISTS * ((N - 1 - every / 2) / every + 1) : 0);
        for (size_t i = 1; i < n; i++)
            assert_true(samples[i - 1].sort < samples[i].sort
                        || (samples[i - 1].sort == samples[i].sort && samples[i - 1].place < samples[i].place));
    }
    assert_int_equal(run_cut_sample(&arena, 1, samples, 7), 7);
    arena.n_sublists = 0;
    assert_int_equal(run_cut_sample(&arena, 1, samples, 7), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_parts_every_list_where_its_keys_stop_being_before_it),
        cmocka_unit_test(test_cut_of_a_run_needs_no_record_where_keys_decide),
        cmocka_unit_test(test_order_of_cuts),
        cmocka_unit_test(test_samples_are_sorted_and_evenly_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
