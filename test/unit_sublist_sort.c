/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include <sys/wait.h>
#include "order/sort_key.h"
#include "order/sublist_sort.h"

enum { SMALL = 48, MILLION = 1000000 };          /* SMALL: where sublist_sort() changes its method */

static struct bam_key_order order;       /* qsort() passes no argument on; without a rule at first */

static int compare_keys(const void *a, const void *b)
{
    const struct bam_key *x = a, *y = b;
    return bam_key_less(&order, x, y) ? -1 : bam_key_less(&order, y, x);
}

/* Sorts a copy in an exact allocation and compares it with the result of qsort(). */
static void check_sort(const struct bam_key *keys, size_t n)
{
    struct bam_key *ours = (struct bam_key *)exact_copy(keys, n * sizeof *keys);
    struct bam_key *theirs = (struct bam_key *)exact_copy(keys, n * sizeof *keys);
    sublist_sort(ours, n, &order);
    if (n)
        qsort(theirs, n, sizeof *theirs, compare_keys);
    for (size_t i = 0; i < n; i++)
        if (ours[i].sort != theirs[i].sort || ours[i].place != theirs[i].place)
            fail_msg("key %zu of %zu: (%llx, %llx) instead of (%llx, %llx)", i, n,
                     (unsigned long long)ours[i].sort, (unsigned long long)ours[i].place,
                     (unsigned long long)theirs[i].sort, (unsigned long long)theirs[i].place);
    free(ours);
    free(theirs);
}

/* Keys whose sort words have only the bits of mask; places as in the arena. */
static struct bam_key *make_keys(size_t n, uint64_t mask, uint64_t seed)
{
    struct bam_key *keys = must_alloc(n * sizeof *keys);
    uint64_t offset = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t size = 37 + unit_below(&seed, 500);
        keys[i] = (struct bam_key){unit_random(&seed) & mask, offset << BAM_KEY_SIZE_BITS | size};
        offset += size;
    }
    return keys;
}

static void check_masked(size_t n, uint64_t mask, uint64_t seed)
{
    struct bam_key *keys = make_keys(n, mask, seed);
    check_sort(keys, n);
    free(keys);
}

static void test_every_length_around_the_change_of_method(void **state)
{
    (void)state;
    static const size_t lengths[]
        = {0, 1, 2, 3, SMALL - 1, SMALL, SMALL + 1, 2 * SMALL, 255, 256, 257, 1000, 4097};
    for (size_t i = 0; i < N_OF(lengths); i++) {
        check_masked(lengths[i], UINT64_MAX, 1 + i);
        check_masked(lengths[i], 3, 100 + i);
    }
}

static void test_a_million_random_keys(void **state)
{
    (void)state;
    check_masked(MILLION, UINT64_MAX, 7);
}

static void test_equal_sort_keys_keep_input_order(void **state)
{
    (void)state;
    check_masked(100000, 0, 8);
    check_masked(100000, 1, 9);
    check_masked(100000, 0x8000000000000000u, 10);
}

/* The list comes from several walks, so places need not rise in the list. */
static void test_places_out_of_order_among_equal_sort_keys(void **state)
{
    (void)state;
    enum { N = 50000 };
    struct bam_key *keys = make_keys(N, 7, 11);
    uint64_t seed = 12;
    for (uint32_t i = N - 1; i > 0; i--) {
        uint32_t j = unit_below(&seed, i + 1);
        struct bam_key swap = keys[i];
        keys[i] = keys[j];
        keys[j] = swap;
    }
    check_sort(keys, N);
    free(keys);
}

/* Each window of bits alone: digits across bytes, the first, the last. */
static void test_differences_in_any_few_bits_alone(void **state)
{
    (void)state;
    for (int shift = 0; shift < 64; shift++) {
        check_masked(300, (uint64_t)0x1ff << shift, 20 + (uint64_t)shift);
        check_masked(300, (uint64_t)1 << shift | 1, 90 + (uint64_t)shift);
    }
}

static void test_differences_in_any_few_bits_of_place_alone(void **state)
{
    (void)state;
    enum { N = 300 };
    struct bam_key keys[N];
    for (int shift = 0; shift <= 64 - 9; shift++) {
        for (uint64_t i = 0; i < N; i++)
            keys[i] = (struct bam_key){42, (i * 7 % N) << shift | ((uint64_t)1 << shift) >> 1};
        check_sort(keys, N);
    }
}

static void test_presorted_and_reversed_input(void **state)
{
    (void)state;
    enum { N = 200000 };
    struct bam_key *keys = make_keys(N, UINT64_MAX, 13);
    qsort(keys, N, sizeof *keys, compare_keys);
    check_sort(keys, N);
    for (size_t i = 0; i < N / 2; i++) {
        struct bam_key swap = keys[i];
        keys[i] = keys[N - 1 - i];
        keys[N - 1 - i] = swap;
    }
    check_sort(keys, N);
    free(keys);
}

/* One key that differs from all others, at every byte: the deepest recursion. */
static void test_one_outlier_per_digit_is_not_lost(void **state)
{
    (void)state;
    enum { N = 4096 };
    struct bam_key *keys = make_keys(N, 0, 14);
    for (unsigned i = 0; i < 64; i++)
        keys[i * 61].sort = (uint64_t)1 << i;
    for (unsigned i = 0; i < 64; i++)
        keys[i * 61 + 30].sort = ~((uint64_t)1 << i);
    check_sort(keys, N);
    free(keys);
}

/* Coordinate keys: a few references, many positions, both strands, all unmapped last. */
static void test_keys_shaped_like_coordinates(void **state)
{
    (void)state;
    enum { N = 300000 };
    struct bam_key *keys = make_keys(N, 0, 15);
    uint64_t seed = 16;
    for (size_t i = 0; i < N; i++) {
        uint64_t ref = unit_below(&seed, 26), pos = unit_below(&seed, 1000000);
        keys[i].sort = ref == 25 ? (uint64_t)0x7fffffff << 33
                     : ref << 33 | pos << 1 | unit_below(&seed, 2);
    }
    check_sort(keys, N);
    free(keys);
}

/* The input of the sort does not exclude two keys that are equal in both words.
 * In a separate process: an endless recursion would end all tests. */
static void test_keys_that_are_the_same_end_the_recursion(void **state)
{
    (void)state;
    int status;
    pid_t child = fork();
    if (child == 0) {
        struct bam_key keys[3 * SMALL];
        for (size_t i = 0; i < N_OF(keys); i++)
            keys[i] = (struct bam_key){5, 6};
        for (size_t n = SMALL - 1; n <= N_OF(keys); n++)
            sublist_sort(keys, n, &order);
        _exit(0);
    }
    MUST(waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
}

/* ---- orders that need the records ---- */

/* Records and their keys. */
struct named {
    struct unit_bytes records;
    struct bam_key *keys;
    struct sort_rule *rule;
    sam_hdr_t *sam;
};

/* Appends the record, and its key as number i. Only bits of mask are left in sort, so that a rule has much or all to
 * decide. */
static void add_record(struct named *m, size_t i, const struct unit_record *r, uint64_t mask)
{
    uint64_t at = m->records.n;
    size_t size = unit_append_record(&m->records, r);
    m->keys[i] = (struct bam_key){0, at << BAM_KEY_SIZE_BITS | size};
    assert_int_equal(sort_key_make(m->rule, (const struct bam_record *)(m->records.data + at), &m->keys[i].sort), BAM_OK);
    m->keys[i].sort &= mask;
}

static struct named make_named(size_t n, uint32_t distinct, uint64_t mask, uint64_t seed)
{
    struct sort_order by_name = {.by = SORT_NAME_NATURAL};
    struct named m = {.keys = must_alloc(n * sizeof *m.keys), .sam = sam_hdr_init()};
    MUST(m.sam);
    m.rule = sort_rule_new(&by_name, m.sam);
    MUST(m.rule);
    for (size_t i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "read%u:%u", unit_below(&seed, distinct),
                 unit_below(&seed, 3));
        struct unit_record r
            = {.ref_id = -1, .pos = -1, .flag = unit_below(&seed, 2) ? 0x40 : 0x80, .name = name};
        add_record(&m, i, &r, mask);
    }
    return m;
}

static void named_free(struct named *m)
{
    order = (struct bam_key_order){NULL, NULL};
    sort_rule_free(m->rule);
    sam_hdr_destroy(m->sam);
    unit_free(&m->records);
    free(m->keys);
}

static void check_named(size_t n, uint32_t distinct, uint64_t mask, uint64_t seed)
{
    struct named m = make_named(n, distinct, mask, seed);
    order = (struct bam_key_order){m.rule, m.records.data};
    check_sort(m.keys, n);
    named_free(&m);
}

static void test_records_decide_where_keys_do_not(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 2, SMALL, SMALL + 1, SMALL + 2, 1000, 1001, 20000};
    for (size_t i = 0; i < N_OF(lengths); i++) {
        check_named(lengths[i], 1000, 0, 200 + i);                   /* all by the records */
        check_named(lengths[i], 1000, (uint64_t)3 << 62, 300 + i);
        check_named(lengths[i], 50000, UINT64_MAX, 400 + i);
    }
}

static void test_equal_records_keep_input_order(void **state)
{
    (void)state;
    check_named(20000, 1, 0, 17);
    check_named(20000, 3, 0, 18);
    check_named(20000, 3, UINT64_MAX, 19);
}

/* A text tag, a number or none, in this order by class; only the class is left in sort: the rest is sorted by parts,
 * some of which are equal beyond those that are tried. */
static struct named make_tagged(size_t n, enum sort_by then, size_t most_alike, uint64_t seed)
{
    struct sort_order by_tag = {.by = SORT_TAG, .then = then, .tag = {'X', 'X'}};
    struct named m = {.keys = must_alloc(n * sizeof *m.keys), .sam = sam_hdr_init()};
    MUST(m.sam);
    m.rule = sort_rule_new(&by_tag, m.sam);
    MUST(m.rule);
    for (size_t i = 0; i < n; i++) {
        char name[16], aux[1024] = "XXZ";
        size_t n_aux = 3 + unit_below(&seed, 4) * most_alike / 3;
        memset(aux + 3, 'a', n_aux - 3);
        n_aux += (size_t)snprintf(aux + n_aux, 16, "%u", unit_below(&seed, 30)) + 1;
        snprintf(name, sizeof name, "r%u", unit_below(&seed, 50));
        struct unit_record r = {.ref_id = -1, .pos = (int32_t)unit_below(&seed, 20), .name = name, .aux = aux, .n_aux = n_aux};
        uint32_t kind = unit_below(&seed, 8);
        if (kind == 0)
            r.n_aux = 0;
        if (kind == 1) {
            static const char *const numbers[] = {"XXf\0\0\x80\x7f", "XXf\0\0\x80\xbf", "XXf\0\0\xc0\x7f", "XXi\1\0\0\0"};
            r.aux = numbers[unit_below(&seed, N_OF(numbers))];
            r.n_aux = 7;
        }
        add_record(&m, i, &r, (uint64_t)7 << 61);
    }
    return m;
}

static void test_many_ties_are_sorted_by_parts(void **state)
{
    (void)state;
    static const enum sort_by then[] = {SORT_COORDINATE, SORT_NAME_NATURAL};
    static const size_t lengths[] = {SMALL, SMALL + 1, 8 * SMALL, 20000}, alike[] = {0, 21, 800};
    for (size_t i = 0; i < N_OF(then) * N_OF(lengths) * N_OF(alike); i++) {
        struct named m = make_tagged(lengths[i / 2 % N_OF(lengths)], then[i % 2], alike[i / 2 / N_OF(lengths)], 500 + i);
        order = (struct bam_key_order){m.rule, m.records.data};
        check_sort(m.keys, lengths[i / 2 % N_OF(lengths)]);
        named_free(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_length_around_the_change_of_method),
        cmocka_unit_test(test_a_million_random_keys),
        cmocka_unit_test(test_equal_sort_keys_keep_input_order),
        cmocka_unit_test(test_places_out_of_order_among_equal_sort_keys),
        cmocka_unit_test(test_differences_in_any_few_bits_alone),
        cmocka_unit_test(test_differences_in_any_few_bits_of_place_alone),
        cmocka_unit_test(test_presorted_and_reversed_input),
        cmocka_unit_test(test_one_outlier_per_digit_is_not_lost),
        cmocka_unit_test(test_keys_shaped_like_coordinates),
        cmocka_unit_test(test_keys_that_are_the_same_end_the_recursion),
        cmocka_unit_test(test_records_decide_where_keys_do_not),
        cmocka_unit_test(test_equal_records_keep_input_order),
        cmocka_unit_test(test_many_ties_are_sorted_by_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
