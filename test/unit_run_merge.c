/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include "bam_arena.h"
#include "sort/run_merge.h"
#include "order/sort_key.h"

enum { MAX_LISTS = 40 };

/* The base of places, when no record is read. */
static const uint8_t nowhere[1];
static struct bam_key_order order = {NULL, nowhere};     /* without a rule at first */

static int compare_keys(const void *a, const void *b)
{
    const struct bam_key *x = a, *y = b;
    return bam_key_less(&order, x, y) ? -1 : bam_key_less(&order, y, x);
}

/* Sublists of the given lengths; sort words below `distinct`, all places different. */
struct lists {
    struct bam_sublist list[MAX_LISTS];
    struct bam_key *all;         /* every key, sorted */
    size_t n, total;
};

static struct lists make_lists(const size_t *lengths, size_t n, uint32_t distinct, uint64_t seed)
{
    struct lists m = {.n = n};
    for (size_t i = 0; i < n; i++)
        m.total += lengths[i];
    m.all = must_alloc(m.total * sizeof *m.all);
    uint64_t place = 0;
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        m.list[i].n = lengths[i];
        for (size_t j = 0; j < lengths[i]; j++, at++)
            m.all[at] = (struct bam_key){unit_below(&seed, distinct), place += 37 << 8};
        m.list[i].keys
            = (struct bam_key *)exact_copy(m.all + at - lengths[i], lengths[i] * sizeof *m.all);
        if (lengths[i])
            qsort(m.list[i].keys, lengths[i], sizeof *m.all, compare_keys);
    }
    if (m.total)
        qsort(m.all, m.total, sizeof *m.all, compare_keys);
    return m;
}

static void free_lists(struct lists *m)
{
    for (size_t i = 0; i < m->n; i++)
        free(m->list[i].keys);
    free(m->all);
}

static void merge_begin(struct run_merge *merge, const struct bam_sublist *list, size_t n)
{
    assert_int_equal(run_merge_init(merge, order.rule, n, 0), 0);
    for (size_t i = 0; i < n; i++)
        run_merge_add(merge, (struct merge_way){list[i].keys, list[i].keys + list[i].n, order.base});
    assert_int_equal(run_merge_start(merge, NULL, NULL), 0);
}

static void check_rest(struct run_merge *merge, const struct bam_key *want, size_t total)
{
    struct merge_item item;
    for (size_t i = 0; i < total; i++) {
        assert_int_equal(run_merge_next(merge, &item), 1);
        assert_int_equal(item.key.sort, want[i].sort);
        assert_int_equal(item.key.place, want[i].place);
        assert_ptr_equal(item.base, order.base);
    }
    assert_int_equal(run_merge_next(merge, &item), 0);
    assert_int_equal(run_merge_next(merge, &item), 0);
}

static void check_merge(const struct bam_sublist *list, size_t n, const struct bam_key *want,
                        size_t total)
{
    struct run_merge merge;
    merge_begin(&merge, list, n);
    check_rest(&merge, want, total);
    run_merge_free(&merge);
}

static void check_lengths(const size_t *lengths, size_t n, uint32_t distinct, uint64_t seed)
{
    struct lists m = make_lists(lengths, n, distinct, seed);
    check_merge(m.list, n, m.all, m.total);
    free_lists(&m);
}

static void test_no_sublist_ends_at_once(void **state)
{
    (void)state;
    check_merge(NULL, 0, NULL, 0);
}

static void test_only_empty_sublists_end_at_once(void **state)
{
    (void)state;
    static const size_t none[5] = {0};
    check_lengths(none, 1, 1, 1);
    check_lengths(none, 5, 1, 1);
}

static void test_one_sublist_passes_unchanged(void **state)
{
    (void)state;
    static const size_t one[] = {1}, many[] = {1000};
    check_lengths(one, 1, 10, 2);
    check_lengths(many, 1, 10, 3);
}

static void test_last_keys_of_two_sublists_are_not_lost(void **state)
{
    (void)state;
    for (size_t a = 0; a < 12; a++)
        for (size_t b = 0; b < 12; b++)
            check_lengths((const size_t[]){a, b}, 2, 4, 100 * a + b);
}

static void test_empty_sublists_among_full_ones(void **state)
{
    (void)state;
    static const size_t lengths[17] = {0, 5, 0, 0, 100, 1, 0, 2000, 0, 1, 1, 7, 0, 64, 33, 0, 0};
    check_lengths(lengths, 17, 50, 4);
    check_lengths(lengths + 1, 15, 1u << 31, 5);
}

static void test_ties_across_sublists_come_in_input_order(void **state)
{
    (void)state;
    size_t lengths[17];
    for (size_t i = 0; i < 17; i++)
        lengths[i] = 500;
    check_lengths(lengths, 17, 1, 6);            /* all equal: only place decides */
    check_lengths(lengths, 17, 2, 7);
}

/* Places cannot be compared across ways: those of a run are relative to its slice. */
static void test_ties_go_to_the_source_that_was_added_first(void **state)
{
    (void)state;
    enum { N = 17, EACH = 30, DISTINCT = 3 };
    struct bam_key keys[N][EACH];
    struct bam_sublist list[N];
    for (size_t i = 0; i < N; i++) {
        list[i] = (struct bam_sublist){keys[i], EACH};
        for (size_t j = 0; j < EACH; j++)        /* the later the way, the lower its places */
            keys[i][j] = (struct bam_key){j / (EACH / DISTINCT), bam_key_place((N - i) * 10000 + j * 100, 37)};
    }
    struct run_merge merge;
    struct merge_item item;
    merge_begin(&merge, list, N);
    for (size_t sort = 0; sort < DISTINCT; sort++)
        for (size_t i = 0; i < N; i++)
            for (size_t j = 0; j < EACH / DISTINCT; j++) {
                assert_int_equal(run_merge_next(&merge, &item), 1);
                assert_int_equal(item.key.sort, sort);
                assert_int_equal(item.key.place, keys[i][sort * (EACH / DISTINCT) + j].place);
            }
    assert_int_equal(run_merge_next(&merge, &item), 0);
    run_merge_free(&merge);
}

static void test_every_number_of_sublists(void **state)
{
    (void)state;
    uint64_t seed = 9;
    for (size_t n = 1; n <= MAX_LISTS; n++) {
        size_t lengths[MAX_LISTS];
        for (size_t i = 0; i < n; i++)
            lengths[i] = unit_below(&seed, 60);
        check_lengths(lengths, n, 1 + unit_below(&seed, 200), seed);
    }
}

static void test_largest_keys_are_not_taken_for_an_end_mark(void **state)
{
    (void)state;
    struct bam_key high[2] = {{UINT64_MAX, UINT64_MAX - 1}, {UINT64_MAX, UINT64_MAX}},
                   low = {0, 0};
    const struct bam_sublist list[2] = {{high, 2}, {&low, 1}};
    const struct bam_key want[3] = {low, high[0], high[1]};
    check_merge(list, 2, want, 3);
}

/* Slices are merged in parallel: two merges over parts of the same sublists. */
static void test_merges_of_two_slices_do_not_disturb_each_other(void **state)
{
    (void)state;
    static const size_t lengths[] = {400, 300, 500};
    enum { SPLIT = 25 };
    struct lists m = make_lists(lengths, 3, 50, 10);
    struct bam_sublist part[2][3];
    size_t first = 0;
    for (size_t i = 0; i < 3; i++) {
        size_t cut = 0;
        while (cut < lengths[i] && m.list[i].keys[cut].sort < SPLIT)
            cut++;
        part[0][i] = (struct bam_sublist){m.list[i].keys, cut};
        part[1][i] = (struct bam_sublist){m.list[i].keys + cut, lengths[i] - cut};
        first += cut;
    }
    struct run_merge merge[2];
    struct merge_item item;
    size_t at[2] = {0, first};
    for (int i = 0; i < 2; i++)
        merge_begin(&merge[i], part[i], 3);
    for (int more = 1; more;) {
        more = 0;
        for (int i = 0; i < 2; i++)
            if (run_merge_next(&merge[i], &item)) {
                assert_int_equal(item.key.place, m.all[at[i]++].place);
                more = 1;
            }
    }
    assert_int_equal(at[0], first);
    assert_int_equal(at[1], m.total);
    run_merge_free(&merge[0]);
    run_merge_free(&merge[1]);
    free_lists(&m);
}

static void test_half_read_merge_is_freed_whole(void **state)
{
    (void)state;
    static const size_t lengths[] = {10, 10};
    struct lists m = make_lists(lengths, 2, 5, 11);
    struct run_merge merge;
    struct merge_item item;
    merge_begin(&merge, m.list, 2);
    assert_int_equal(run_merge_next(&merge, &item), 1);
    run_merge_free(&merge);
    assert_int_equal(run_merge_next(&merge, &item), 0);
    free_lists(&m);
}

/* All keys are equal: the names of the records decide, then place. */
static void test_records_decide_where_keys_do_not(void **state)
{
    (void)state;
    enum { N = 600, N_LISTS = 3 };
    struct sort_order by_name = {.by = SORT_NAME_NATURAL};
    struct bam_key keys[N], all[N];
    struct bam_sublist list[N_LISTS];
    struct unit_bytes records = {NULL, 0, 0};
    sam_hdr_t *sam = sam_hdr_init();
    uint64_t seed = 12;
    struct sort_rule *rule = sort_rule_new(&by_name, sam);
    MUST(sam && rule);
    for (int i = 0; i < N; i++) {
        char name[16];
        snprintf(name, sizeof name, "r%u", unit_below(&seed, 100));
        struct unit_record r = {.ref_id = -1, .pos = -1, .name = name};
        uint64_t at = records.n;
        keys[i] = all[i]
            = (struct bam_key){7, at << BAM_KEY_SIZE_BITS | unit_append_record(&records, &r)};
    }
    order = (struct bam_key_order){rule, records.data};
    for (int i = 0; i < N_LISTS; i++) {
        list[i] = (struct bam_sublist){keys + i * (N / N_LISTS), N / N_LISTS};
        qsort(list[i].keys, list[i].n, sizeof *keys, compare_keys);
    }
    qsort(all, N, sizeof *all, compare_keys);
    check_merge(list, N_LISTS, all, N);
    order = (struct bam_key_order){NULL, nowhere};
    sort_rule_free(rule);
    sam_hdr_destroy(sam);
    unit_free(&records);
}

/* ---- ways that arrive piece by piece ---- */

/* The keys of some lists, a few at a time; each piece in separate memory,
 * which is freed when the next one is requested. */
struct pieces {
    const struct bam_sublist *list;
    size_t at[MAX_LISTS];
    struct bam_key *piece[MAX_LISTS];
    uint32_t max;                /* keys in a piece; sometimes there are none */
    uint64_t seed;
    size_t asked, fail_at;       /* number of calls; fail_at: the one that fails, 0: none */
    bool ended[MAX_LISTS];       /* has received the end of the list */
    bool asked_again;
};

static int next_piece(void *arg, size_t number, struct merge_way *way)
{
    struct pieces *p = arg;
    free(p->piece[number]);
    p->piece[number] = NULL;
    if (++p->asked == p->fail_at)
        return -1;
    const struct bam_sublist *list = &p->list[number];
    size_t n = unit_below(&p->seed, p->max + 1), left = list->n - p->at[number];
    p->asked_again = p->asked_again || p->ended[number];
    if (left == 0) {
        p->ended[number] = true;
        return 0;
    }
    n = n < left ? n : left;
    p->piece[number] = (struct bam_key *)exact_copy(list->keys + p->at[number], n * sizeof *list->keys);
    p->at[number] += n;
    *way = (struct merge_way){p->piece[number], p->piece[number] + n, order.base};
    return 1;
}

static int pieces_begin(struct run_merge *merge, struct pieces *p, size_t n)
{
    assert_int_equal(run_merge_init(merge, order.rule, n, n), 0);
    return run_merge_start(merge, next_piece, p);
}

static void pieces_end(struct run_merge *merge, struct pieces *p)
{
    run_merge_free(merge);
    for (size_t i = 0; i < MAX_LISTS; i++)
        free(p->piece[i]);
}

static void test_ways_filled_a_few_keys_at_a_time(void **state)
{
    (void)state;
    static const uint32_t most[] = {1, 2, 3, 50, 5000};
    uint64_t seed = 13;
    for (size_t n = 0; n <= MAX_LISTS; n += 1 + n / 4)
        for (size_t i = 0; i < N_OF(most); i++) {
            size_t lengths[MAX_LISTS];
            for (size_t j = 0; j < n; j++)
                lengths[j] = unit_below(&seed, 4) ? unit_below(&seed, 100) : 0;
            struct lists m = make_lists(lengths, n, 1 + unit_below(&seed, 30), seed);
            struct pieces p = {.list = m.list, .max = most[i], .seed = seed};
            struct run_merge merge;
            assert_int_equal(pieces_begin(&merge, &p, n), 0);
            check_rest(&merge, m.all, m.total);
            assert_false(p.asked_again);
            pieces_end(&merge, &p);
            free_lists(&m);
        }
}

/* The caller reads the returned keys until it requests the next ones. */
static void test_source_is_not_refilled_while_its_last_key_is_in_use(void **state)
{
    (void)state;
    static const size_t lengths[] = {5, 5, 5};
    struct lists m = make_lists(lengths, 3, 4, 14);
    struct pieces p = {.list = m.list, .max = 1, .seed = 15};
    struct run_merge merge;
    struct merge_item item;
    assert_int_equal(pieces_begin(&merge, &p, 3), 0);
    for (size_t i = 0; i < m.total; i++) {
        assert_int_equal(run_merge_next(&merge, &item), 1);
        size_t still_there = 0;
        for (size_t j = 0; j < 3; j++)           /* pieces are of one key: it must be one of them */
            still_there += p.piece[j] && p.piece[j]->place == item.key.place;
        assert_int_equal(still_there, 1);
    }
    assert_int_equal(run_merge_next(&merge, &item), 0);
    pieces_end(&merge, &p);
    free_lists(&m);
}

static void test_failure_to_refill_ends_the_merge(void **state)
{
    (void)state;
    static const size_t lengths[] = {20, 1, 30};
    struct lists m = make_lists(lengths, 3, 9, 16);
    size_t fail_at = 1;
    for (int there = -1; there < 0; fail_at++) {
        struct pieces p = {.list = m.list, .max = 3, .seed = 17, .fail_at = fail_at};
        struct run_merge merge;
        struct merge_item item;
        size_t given = 0;
        there = pieces_begin(&merge, &p, 3);
        if (there == 0)
            for (; (there = run_merge_next(&merge, &item)) > 0; given++)
                assert_int_equal(item.key.place, m.all[given].place);
        assert_true(there < 0 || given == m.total);
        assert_true(there < 0 || p.asked < fail_at);
        pieces_end(&merge, &p);
    }
    assert_true(fail_at > 20);
    free_lists(&m);
}

static void test_keys_say_what_their_places_are_relative_to(void **state)
{
    (void)state;
    struct unit_bytes bytes[3] = {{NULL, 0, 0}, {NULL, 0, 0}, {NULL, 0, 0}};
    struct bam_key keys[3][2];
    struct run_merge merge;
    struct merge_item item;
    assert_int_equal(run_merge_init(&merge, NULL, 3, 0), 0);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 2; j++) {
            size_t at = bytes[i].n;
            keys[i][j] = (struct bam_key){(uint64_t)(j * 3 + i),
                                          bam_key_place(at, unit_append_smallest(&bytes[i], j * 3 + i))};
        }
    for (int i = 0; i < 3; i++)
        run_merge_add(&merge, (struct merge_way){keys[i], keys[i] + 2, bytes[i].data});
    assert_int_equal(run_merge_start(&merge, NULL, NULL), 0);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(run_merge_next(&merge, &item), 1);
        const uint8_t *record = bam_key_record(item.base, item.key);
        assert_int_equal(bam_record_pos((const struct bam_record *)record), i);
        assert_int_equal(bam_key_record_size(item.base, item.key), BAM_MIN_RECORD);
    }
    run_merge_free(&merge);
    for (int i = 0; i < 3; i++)
        unit_free(&bytes[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_sublist_ends_at_once),
        cmocka_unit_test(test_only_empty_sublists_end_at_once),
        cmocka_unit_test(test_one_sublist_passes_unchanged),
        cmocka_unit_test(test_last_keys_of_two_sublists_are_not_lost),
        cmocka_unit_test(test_empty_sublists_among_full_ones),
        cmocka_unit_test(test_ties_across_sublists_come_in_input_order),
        cmocka_unit_test(test_ties_go_to_the_source_that_was_added_first),
        cmocka_unit_test(test_every_number_of_sublists),
        cmocka_unit_test(test_largest_keys_are_not_taken_for_an_end_mark),
        cmocka_unit_test(test_merges_of_two_slices_do_not_disturb_each_other),
        cmocka_unit_test(test_half_read_merge_is_freed_whole),
        cmocka_unit_test(test_records_decide_where_keys_do_not),
        cmocka_unit_test(test_ways_filled_a_few_keys_at_a_time),
        cmocka_unit_test(test_source_is_not_refilled_while_its_last_key_is_in_use),
        cmocka_unit_test(test_failure_to_refill_ends_the_merge),
        cmocka_unit_test(test_keys_say_what_their_places_are_relative_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
